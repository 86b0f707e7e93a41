"""
wrong: all the room goes to slots
check: fit
rule: fit.rest_stays
phrase: All the room goes to slots
"""


def fit(budget, always, layers, layer_bytes):
    room = (budget - always) // layer_bytes
    if room >= layers:
        return 0, 0
    if room < 2:
        raise ValueError("no room for the slots")
    return layers, room
