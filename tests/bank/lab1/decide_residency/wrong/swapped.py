"""
wrong: needed and available are swapped
check: refuse_budget, gate
phrase: needed and available are swapped
rule: refuse_budget.needed
"""


def decide_residency(sizes, budget):
    slots = (budget - sizes["always"]) // sizes["layer"]
    if slots >= sizes["layers"]:
        return "resident"
    if slots >= 2:
        return slots
    least = min(2, sizes["layers"])
    raise DoesNotFit(budget, sizes["always"] + least * sizes["layer"])
