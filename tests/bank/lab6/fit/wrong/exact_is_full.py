"""
wrong: a budget that is used up exactly does not count
check: fit
rule: fit.exactly
phrase: An exact fit does not count
"""


def fit(budget, always, layers, layer_bytes):
    room = (budget - always - 1) // layer_bytes
    if room >= layers:
        return 0, 0
    if room < 2:
        raise ValueError("no room for the slots")
    return layers - (room - 2), 2
