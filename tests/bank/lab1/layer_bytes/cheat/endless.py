"""
wrong: never ends
check: layer_bytes
phrase: took too long
"""


def layer_bytes(config):
    while True:
        pass
