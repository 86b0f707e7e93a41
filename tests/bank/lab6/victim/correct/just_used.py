"""
note: the newest: the first held one going back from the layer
"""


def victim(held, layer, layers):
    for back in range(1, layers):
        if (layer - back) % layers in held:
            return (layer - back) % layers
