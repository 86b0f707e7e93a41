"""
note: those behind the layer first, the largest of them
"""


def victim(held, layer, layers):
    behind = [other for other in held if other < layer]
    return max(behind) if behind else max(held)
