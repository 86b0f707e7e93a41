"""
wrong: a model of one layer is said to need two slots
check: refuse_budget
phrase: Two slots for one layer
rule: refuse_budget.single
"""


def decide_residency(sizes, budget):
    slots = (budget - sizes["always"]) // sizes["layer"]
    if slots >= sizes["layers"]:
        return "resident"
    if slots >= 2:
        return slots
    least = 2
    raise DoesNotFit(sizes["always"] + least * sizes["layer"], budget)
