"""
wrong: a pool even if it covers all layers
check: decide_residency, gate
phrase: A pool as large as the model
rule: decide_residency.resident
"""


def decide_residency(sizes, budget):
    slots = (budget - sizes["always"]) // sizes["layer"]
    if slots >= min(2, sizes["layers"]):
        return slots
    least = min(2, sizes["layers"])
    raise DoesNotFit(sizes["always"] + least * sizes["layer"], budget)
