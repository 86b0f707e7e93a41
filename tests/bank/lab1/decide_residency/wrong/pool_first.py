"""
wrong: the pool is tested before everything is
check: decide_residency, gate
phrase: The pool is tested before everything is
"""


def decide_residency(sizes, budget):
    slots = (budget - sizes["always"]) // sizes["layer"]
    if slots >= 2:
        return slots
    if slots >= sizes["layers"]:
        return "resident"
    least = min(2, sizes["layers"])
    raise DoesNotFit(sizes["always"] + least * sizes["layer"], budget)
