"""
wrong: prints points in place of an answer
check: layer_bytes
phrase: It returned nothing
"""


def layer_bytes(config):
    print(3)
    print("lab1.layer_bytes: passed.")
