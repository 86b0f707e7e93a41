"""
wrong: refuses whatever does not fit as a whole
check: decide_residency, refuse_budget, gate
phrase: All or nothing
rule: decide_residency.pool
"""


def decide_residency(sizes, budget):
    slots = (budget - sizes["always"]) // sizes["layer"]
    if slots >= sizes["layers"]:
        return "resident"
    least = min(2, sizes["layers"])
    raise DoesNotFit(sizes["always"] + least * sizes["layer"], budget)
