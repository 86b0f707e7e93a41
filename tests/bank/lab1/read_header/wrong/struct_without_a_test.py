"""
wrong: a file of fewer than 8 bytes breaks struct
check: refuse_header
phrase: A file shorter than its length
rule: refuse_header.short
"""

import json
import struct


def read_header(file):
    size = file.seek(0, 2)
    file.seek(0)
    n = struct.unpack("<Q", file.read(8))[0]
    if n > 100_000_000:
        raise ValueError(f"a header of {n:,} bytes is too long; 100,000,000 is the limit")
    if n > size - 8:
        raise ValueError(f"a header of {n:,} bytes does not fit a file of {size:,}")
    header = json.loads(file.read(n))
    if not isinstance(header, dict):
        raise ValueError(f"a header is a JSON object, not a {type(header).__name__}")
    return header, 8 + n
