"""
wrong: needed leaves out what always stays
check: refuse_budget, gate
phrase: needed leaves out what always stays
rule: refuse_budget.needed
"""


def decide_residency(sizes, budget):
    slots = (budget - sizes["always"]) // sizes["layer"]
    if slots >= sizes["layers"]:
        return "resident"
    if slots >= 2:
        return slots
    least = min(2, sizes["layers"])
    raise DoesNotFit(least * sizes["layer"], budget)
