"""
wrong: what always stays is not subtracted
check: decide_residency, refuse_budget, gate
phrase: What always stays is forgotten
rule: decide_residency.always
"""


def decide_residency(sizes, budget):
    slots = budget // sizes["layer"]
    if slots >= sizes["layers"]:
        return "resident"
    if slots >= 2:
        return slots
    least = min(2, sizes["layers"])
    raise DoesNotFit(sizes["always"] + least * sizes["layer"], budget)
