"""
wrong: ends the process before the check can speak
check: layer_bytes
phrase: SystemExit
"""


def layer_bytes(config):
    raise SystemExit
