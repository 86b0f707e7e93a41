"""
wrong: a list is unpacked that has not the right length
check: refuse_header
phrase: Python itself
rule: refuse_header.refuses
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
    (_,) = [None] * (1 if isinstance(header, dict) else 2)
    return header, 8 + n
