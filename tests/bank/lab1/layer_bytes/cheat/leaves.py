"""
wrong: ends the process before the check can speak
check: layer_bytes
phrase: SystemExit
"""

import sys


def layer_bytes(config):
    sys.exit(0)
