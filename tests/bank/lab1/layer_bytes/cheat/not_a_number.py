"""
wrong: NaN, which no comparison with > finds
check: layer_bytes
phrase: this is a float
"""


def layer_bytes(config):
    return float("nan")
