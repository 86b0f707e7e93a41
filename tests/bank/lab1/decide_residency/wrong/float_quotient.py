"""
wrong: the quotient is a float, rounded down
check: decide_residency, refuse_budget
phrase: The quotient is a float
rule: decide_residency.whole
"""


def decide_residency(sizes, budget):
    slots = int((budget - sizes["always"]) / sizes["layer"])
    if slots >= sizes["layers"]:
        return "resident"
    if slots >= 2:
        return slots
    least = min(2, sizes["layers"])
    raise DoesNotFit(sizes["always"] + least * sizes["layer"], budget)
