"""
note: counts up, with a helper
"""


def fits(sizes, budget, slots):
    return not budget < sizes["always"] + sizes["layer"] * slots


def decide_residency(sizes, budget):
    if fits(sizes, budget, sizes["layers"]):
        return "resident"
    if sizes["layers"] < 2 or not fits(sizes, budget, 2):
        raise DoesNotFit(sizes["always"] + sizes["layer"] * (1 if sizes["layers"] == 1 else 2), budget)
    pool = 2
    while fits(sizes, budget, pool + 1):
        pool += 1
    return pool
