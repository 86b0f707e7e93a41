"""
wrong: two slots even where all layers fit
check: fit
rule: fit.all_stay
phrase: Slots even where all layers fit
"""


def fit(budget, always, layers, layer_bytes):
    room = (budget - always) // layer_bytes
    if room >= layers + 2:
        return 0, 0
    if room < 2:
        raise ValueError("no room for the slots")
    return layers - min(layers, room - 2), 2
