"""
wrong: slots by /, which gives a float
check: decide_residency, refuse_budget, gate
phrase: this is a float
"""


def decide_residency(sizes, budget):
    slots = (budget - sizes["always"]) / sizes["layer"]
    if slots >= sizes["layers"]:
        return "resident"
    if slots >= 2:
        return slots
    least = min(2, sizes["layers"])
    raise DoesNotFit(sizes["always"] + least * sizes["layer"], budget)
