"""
wrong: nothing is refused
check: fit, gate
rule: fit.refuse
phrase: No refusal
"""


def fit(budget, always, layers, layer_bytes):
    room = (budget - always) // layer_bytes
    if room >= layers:
        return 0, 0
    return layers - max(0, room - 2), 2
