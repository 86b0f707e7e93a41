"""
note: struct, and no look at the size
"""

import json
import struct


def read_header(f):
    first = f.read(8)
    if len(first) != 8:
        raise ValueError("truncated")
    (n,) = struct.unpack("<Q", first)
    if n > 10**8:
        raise ValueError("too long")
    text = f.read(n)
    if len(text) < n:
        raise ValueError("truncated header")
    try:
        header = json.loads(text.decode("utf-8"))
    except ValueError as error:
        raise ValueError(f"no JSON: {error}") from error
    if type(header) is not dict:
        raise ValueError("no object")
    return header, f.tell()
