"""
note: goes around until only one is left
"""


def victim(held, layer, layers):
    left = set(held)
    step = layer
    while len(left) > 1:
        step = (step + 1) % layers
        left.discard(step)
    return left.pop()
