"""
note: tries fewer and fewer layers that stay
"""


def fit(budget, always, layers, layer_bytes):
    if always + layers * layer_bytes <= budget:
        return 0, 0
    for stay in range(layers - 1, -1, -1):
        if always + (stay + 2) * layer_bytes <= budget:
            return layers - stay, 2
    raise ValueError("not even two slots")
