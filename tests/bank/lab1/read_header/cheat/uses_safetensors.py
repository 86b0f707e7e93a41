"""
wrong: lets the library read
check: read_header, refuse_header
phrase: holds the answer
"""

from safetensors import safe_open


def read_header(file):
    with safe_open(file, "pt") as opened:
        return opened.metadata(), 8
