"""
note: a binary search among what is held
"""

import bisect


def victim(held, layer, layers):
    order = sorted(held)
    return order[bisect.bisect(order, layer) - 1]
