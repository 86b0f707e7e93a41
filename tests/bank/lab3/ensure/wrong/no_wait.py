"""
wrong: takes submitted for arrived
check: ensure, gate
phrase: Nobody waits for the copy
rule: ensure.arrived
"""


def ensure(ring, layer):
    return ring.hand_over(ring.slot_of(ring.step), layer)
