"""
note: an error class of its own, below ValueError; a list for a pair
"""


class NoRoom(ValueError):
    pass


def fit(budget, always, layers, layer_bytes):
    free = budget - always
    room = free // layer_bytes
    if room >= layers:
        return [0, 0]
    if room < 2:
        raise NoRoom(f"{free} bytes for two slots of {layer_bytes}")
    return [layers + 2 - room, 2]
