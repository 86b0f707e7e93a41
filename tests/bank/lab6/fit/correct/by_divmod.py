"""
note: divmod and one expression
"""


def fit(budget, always, layers, layer_bytes):
    room, _ = divmod(budget - always, layer_bytes)
    if room < min(2, layers):
        raise ValueError("two slots do not fit")
    slots = 2 if room < layers else 0
    return (layers - room + slots if slots else 0), slots
