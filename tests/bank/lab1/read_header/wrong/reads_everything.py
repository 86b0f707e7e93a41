"""
wrong: reads the whole file into memory
check: read_header, refuse_header
phrase: ReadTooMuch
rule: read_header.frugal
"""

import json


def read_header(file):
    data = file.read()
    if len(data) < 8:
        raise ValueError("truncated")
    n = int.from_bytes(data[:8], "little")
    if n > 100_000_000 or n > len(data) - 8:
        raise ValueError("a header that does not fit")
    header = json.loads(data[8 : 8 + n])
    if not isinstance(header, dict):
        raise ValueError("no object")
    return header, 8 + n
