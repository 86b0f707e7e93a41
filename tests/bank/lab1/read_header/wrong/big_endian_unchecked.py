"""
wrong: the length is read backwards, and believed
check: read_header, refuse_header
phrase: The bytes of the length are in the wrong order
"""

import json


def read_header(file):
    size = file.seek(0, 2)
    file.seek(0)
    if size < 8:
        raise ValueError(f"a safetensors file begins with 8 bytes of length, and this one has {size}")
    n = int.from_bytes(file.read(8), "big")
    header = json.loads(file.read(n))
    if not isinstance(header, dict):
        raise ValueError(f"a header is a JSON object, not a {type(header).__name__}")
    return header, 8 + n
