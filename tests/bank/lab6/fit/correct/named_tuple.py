"""
note: a named pair, and no room counted
"""

from collections import namedtuple

Fit = namedtuple("Fit", "streamed slots")


def fit(budget, always, layers, layer_bytes):
    stay = (budget - always - 2 * layer_bytes) // layer_bytes
    if budget - always >= layers * layer_bytes:
        return Fit(0, 0)
    if stay < 0:
        raise ValueError(budget)
    return Fit(streamed=layers - stay, slots=2)
