"""
wrong: too small a budget gets two slots anyway
check: refuse_budget, gate
phrase: It gave an answer where it has to refuse
"""


def decide_residency(sizes, budget):
    slots = (budget - sizes["always"]) // sizes["layer"]
    if slots >= sizes["layers"]:
        return "resident"
    return max(2, slots)
