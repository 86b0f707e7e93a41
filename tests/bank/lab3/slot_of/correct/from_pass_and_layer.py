"""
note: puts the step together again
"""


def slot_of(step, layers, pool):
    token, layer = divmod(step, layers)
    return (token * layers + layer) % pool
