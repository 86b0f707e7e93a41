"""
wrong: three slots
check: fit, gate
rule: fit.two_slots
phrase: Three slots
"""


def fit(budget, always, layers, layer_bytes):
    room = (budget - always) // layer_bytes
    if room >= layers:
        return 0, 0
    if room < 3:
        raise ValueError("no room for the slots")
    return layers - (room - 3), 3
