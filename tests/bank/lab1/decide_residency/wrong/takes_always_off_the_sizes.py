"""
wrong: the caller's sizes are written to
check: decide_residency, refuse_budget
phrase: It overwrites sizes
rule: decide_residency.keeps_inputs
"""


def decide_residency(sizes, budget):
    sizes["slots"] = 0
    slots = (budget - sizes["always"]) // sizes["layer"]
    if slots >= sizes["layers"]:
        return "resident"
    if slots >= 2:
        return slots
    least = min(2, sizes["layers"])
    raise DoesNotFit(sizes["always"] + least * sizes["layer"], budget)
