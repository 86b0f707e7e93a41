"""
note: walks on by whole steps and carries the rest
"""


def spread(layers, streamed):
    chosen, rest = [], 0
    for layer in range(layers):
        rest += streamed
        if rest >= layers:
            rest -= layers
            chosen.append(layer)
    return chosen
