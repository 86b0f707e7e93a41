"""
note: rounds each place
"""


def spread(layers, streamed):
    places = []
    for place in range(streamed):
        places.append(int(place * (layers / streamed) + 1e-9))
    return places
