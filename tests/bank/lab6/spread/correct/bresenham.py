"""
note: an error that is carried along, as lines are drawn
"""


def spread(layers, streamed):
    places, error = [], 0
    for layer in range(layers):
        error += streamed
        if error >= layers:
            error -= layers
            places.append(layer)
    return places
