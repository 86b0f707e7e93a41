"""
wrong: a division that leaves decimals
check: fit, gate
rule: fit.whole
phrase: has the wrong form
"""


def fit(budget, always, layers, layer_bytes):
    room = (budget - always) / layer_bytes
    if room >= layers:
        return 0, 0
    if room < 2:
        raise ValueError("no room for the slots")
    return layers - (room - 2), 2
