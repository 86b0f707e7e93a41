"""
wrong: room for exactly all layers is taken for a pool
check: decide_residency, refuse_budget, gate
phrase: Room for exactly all layers is not taken for resident
rule: decide_residency.resident
"""


def decide_residency(sizes, budget):
    slots = (budget - sizes["always"]) // sizes["layer"]
    if slots > sizes["layers"]:
        return "resident"
    if slots >= 2:
        return slots
    least = min(2, sizes["layers"])
    raise DoesNotFit(sizes["always"] + least * sizes["layer"], budget)
