"""
wrong: needed is the whole model
check: refuse_budget, gate
phrase: needed is the whole model
rule: refuse_budget.needed
"""


def decide_residency(sizes, budget):
    slots = (budget - sizes["always"]) // sizes["layer"]
    if slots >= sizes["layers"]:
        return "resident"
    if slots >= 2:
        return slots
    least = min(2, sizes["layers"])
    raise DoesNotFit(sizes["always"] + sizes["layers"] * sizes["layer"], budget)
