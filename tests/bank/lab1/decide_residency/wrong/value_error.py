"""
wrong: refuses with another exception
check: refuse_budget, gate
phrase: where it has to refuse with DoesNotFit
"""


def decide_residency(sizes, budget):
    slots = (budget - sizes["always"]) // sizes["layer"]
    if slots >= sizes["layers"]:
        return "resident"
    if slots >= 2:
        return slots
    least = min(2, sizes["layers"])
    raise ValueError("too small")
