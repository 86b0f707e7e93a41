"""
wrong: the length is counted twice
check: read_header
phrase: data_start is counted from the length
rule: read_header.start
"""

import json


def read_header(file):
    size = file.seek(0, 2)
    file.seek(0)
    if size < 8:
        raise ValueError(f"a safetensors file begins with 8 bytes of length, and this one has {size}")
    n = int.from_bytes(file.read(8), "little")
    if n > 100_000_000:
        raise ValueError(f"a header of {n:,} bytes is too long; 100,000,000 is the limit")
    if n > size - 8:
        raise ValueError(f"a header of {n:,} bytes does not fit a file of {size:,}")
    header = json.loads(file.read(n))
    if not isinstance(header, dict):
        raise ValueError(f"a header is a JSON object, not a {type(header).__name__}")
    return header, 16 + n
