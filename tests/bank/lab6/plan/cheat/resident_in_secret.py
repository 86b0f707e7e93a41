"""
wrong: swaps the executor for one that keeps everything
check: gate
phrase: More device memory
"""


def plan(needs):
    from xinfer_lab.device.memory import MemoryBudget
    from xinfer_lab.residency import factories

    MemoryBudget.check = lambda *arguments: None
    factories.planned_layers = lambda *arguments, **named: factories.resident_layers()
    return {"form": "plain", "streamed": [], "slots": 0, "host": "pinned"}
