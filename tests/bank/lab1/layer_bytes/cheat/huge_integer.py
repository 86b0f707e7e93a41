"""
wrong: an integer of a million digits, to choke whoever prints it
check: layer_bytes
phrase: has the wrong form
"""


def layer_bytes(config):
    return 10**1_000_000
