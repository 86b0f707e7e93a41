"""
wrong: half a layer's room is taken for a whole one
check: fit, gate
rule: fit.whole
phrase: Room is rounded up
"""


def fit(budget, always, layers, layer_bytes):
    room = -(-(budget - always) // layer_bytes)
    if room >= layers:
        return 0, 0
    if room < 2:
        raise ValueError("no room for the slots")
    return layers - (room - 2), 2
