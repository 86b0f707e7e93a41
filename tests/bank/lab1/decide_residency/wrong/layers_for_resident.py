"""
wrong: the number of layers in place of the word
check: decide_residency, gate
phrase: expected:     'resident'
rule: decide_residency.resident
"""


def decide_residency(sizes, budget):
    slots = (budget - sizes["always"]) // sizes["layer"]
    if slots >= sizes["layers"]:
        return sizes["layers"]
    if slots >= 2:
        return slots
    least = min(2, sizes["layers"])
    raise DoesNotFit(sizes["always"] + least * sizes["layer"], budget)
