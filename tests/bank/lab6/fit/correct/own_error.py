"""
note: an error class of its own, below ValueError; a list for a pair
"""


class NoRoom(ValueError):
    pass


def fit(budget, always, layers, layer_bytes):
    free = budget - always
    if free < 2 * layer_bytes:
        raise NoRoom(f"{free} bytes for two slots of {layer_bytes}")
    room = free // layer_bytes
    return [0, 0] if room >= layers else [layers + 2 - room, 2]
