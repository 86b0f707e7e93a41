"""
wrong: divides as floats, and rounds
check: fit
rule: fit.whole
phrase: This is not the right pair
"""


def fit(budget, always, layers, layer_bytes):
    room = int((budget - always) / layer_bytes)
    if room >= layers:
        return 0, 0
    if room < 2:
        raise ValueError("no room for two slots")
    return layers - (room - 2), 2
