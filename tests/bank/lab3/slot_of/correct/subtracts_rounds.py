"""
note: multiplies and subtracts
"""


def slot_of(step, layers, pool):
    return step - step // pool * pool
