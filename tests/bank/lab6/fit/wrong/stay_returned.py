"""
wrong: how many stay is returned
check: fit, gate
rule: fit.streamed
phrase: The layers that stay are returned
"""


def fit(budget, always, layers, layer_bytes):
    room = (budget - always) // layer_bytes
    if room >= layers:
        return layers, 0
    if room < 2:
        raise ValueError("no room")
    return room - 2, 2
