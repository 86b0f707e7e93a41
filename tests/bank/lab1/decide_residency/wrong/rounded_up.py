"""
wrong: part of a slot is counted as one
check: decide_residency, refuse_budget, gate
phrase: It gave an answer where it has to refuse
rule: decide_residency.whole
"""


def decide_residency(sizes, budget):
    slots = -((sizes["always"] - budget) // sizes["layer"])
    if slots >= sizes["layers"]:
        return "resident"
    if slots >= 2:
        return slots
    least = min(2, sizes["layers"])
    raise DoesNotFit(sizes["always"] + least * sizes["layer"], budget)
