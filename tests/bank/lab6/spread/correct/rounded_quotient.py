"""
note: multiplies a quotient that was rounded before; no distance is off by that
"""


def spread(layers, streamed):
    return [int(place * (layers / streamed)) for place in range(streamed)]
