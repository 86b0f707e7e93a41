"""
wrong: a refusal by returning None
check: fit, gate
rule: fit.refuse
phrase: where it has to refuse
"""


def fit(budget, always, layers, layer_bytes):
    room = (budget - always) // layer_bytes
    if room >= layers:
        return 0, 0
    if room < 2:
        return None
    return layers - (room - 2), 2
