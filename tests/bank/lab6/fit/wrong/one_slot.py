"""
wrong: one slot
check: fit
rule: fit.two_slots
phrase: One slot
"""


def fit(budget, always, layers, layer_bytes):
    room = (budget - always) // layer_bytes
    if room >= layers:
        return 0, 0
    if room < 1:
        raise ValueError("no room for the slots")
    return layers - (room - 1), 1
