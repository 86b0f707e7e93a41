"""
note: as the instructor's notebook has it
"""


def decide_residency(sizes, budget):
    slots = (budget - sizes["always"]) // sizes["layer"]
    if slots >= sizes["layers"]:
        return "resident"
    if slots >= 2:
        return slots
    least = min(2, sizes["layers"])
    raise DoesNotFit(sizes["always"] + least * sizes["layer"], budget)
