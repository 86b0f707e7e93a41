"""
wrong: a pool of two wherever not everything fits
check: decide_residency, gate
phrase: Always a pool of two
rule: decide_residency.largest
"""


def decide_residency(sizes, budget):
    slots = (budget - sizes["always"]) // sizes["layer"]
    if slots >= sizes["layers"]:
        return "resident"
    if slots >= 2:
        return 2
    least = min(2, sizes["layers"])
    raise DoesNotFit(sizes["always"] + least * sizes["layer"], budget)
