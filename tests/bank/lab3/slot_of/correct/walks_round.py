"""
note: slow: walks round the ring
"""


def slot_of(s, n_layers, n_slots):
    slot = 0
    for _ in range(s):
        slot = slot + 1 if slot + 1 < n_slots else 0
    return slot
