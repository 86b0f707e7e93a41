"""
wrong: a pool of one slot is accepted
check: refuse_budget, gate
phrase: A pool of one is accepted
rule: refuse_budget.two_slots
"""


def decide_residency(sizes, budget):
    slots = (budget - sizes["always"]) // sizes["layer"]
    if slots >= sizes["layers"]:
        return "resident"
    if slots >= 1:
        return slots
    least = min(2, sizes["layers"])
    raise DoesNotFit(sizes["always"] + least * sizes["layer"], budget)
