"""
wrong: where nothing fits a list lacks an item
check: fit
rule: fit.refuses
phrase: that is no refusal
"""


def fit(budget, always, layers, layer_bytes):
    room = (budget - always) // layer_bytes
    if room >= layers:
        return 0, 0
    possible = list(range(2, layers))
    return layers - possible.index(room), 2
