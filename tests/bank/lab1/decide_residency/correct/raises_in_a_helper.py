"""
note: the refusal is raised in a function of its own
"""


def refuse(needed, budget):
    error = DoesNotFit(needed, budget)
    raise error


def decide_residency(sizes, budget):
    slots = (budget - sizes["always"]) // sizes["layer"]
    if slots >= sizes["layers"]:
        return "resident"
    if slots >= 2:
        return slots
    least = min(2, sizes["layers"])
    refuse(sizes["always"] + least * sizes["layer"], budget)
