"""
wrong: never ends
check: layer_bytes
phrase: did not come to an end
"""


def layer_bytes(config):
    while True:
        pass
