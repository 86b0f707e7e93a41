"""
wrong: a budget that is exactly full is refused
check: decide_residency, refuse_budget, gate
phrase: Exactly full counts as too full
rule: decide_residency.equal_fits
"""


def decide_residency(sizes, budget):
    slots = (budget - sizes["always"] - 1) // sizes["layer"]
    if slots >= sizes["layers"]:
        return "resident"
    if slots >= 2:
        return slots
    least = min(2, sizes["layers"])
    raise DoesNotFit(sizes["always"] + least * sizes["layer"], budget)
