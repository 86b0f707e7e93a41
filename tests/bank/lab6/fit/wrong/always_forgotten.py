"""
wrong: what is always there is forgotten
check: fit, gate
rule: fit.always
phrase: What is always there is forgotten
"""


def fit(budget, always, layers, layer_bytes):
    room = budget // layer_bytes
    if room >= layers:
        return 0, 0
    if room < 2:
        raise ValueError("no room for the slots")
    return layers - (room - 2), 2
