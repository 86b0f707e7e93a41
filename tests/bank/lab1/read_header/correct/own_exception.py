"""
note: a subclass of ValueError, a helper, a list in place of a tuple
"""

import json


class NoSafetensors(ValueError):
    pass


def length_of(file):
    n = sum(byte << (8 * place) for place, byte in enumerate(file.read(8)))
    rest = file.seek(0, 2) - 8
    file.seek(8)
    if not 0 <= n <= min(rest, 100_000_000):
        raise NoSafetensors(n)
    return n


def read_header(file):
    n = length_of(file)
    header = json.loads(file.read(n))
    if isinstance(header, dict):
        return [header, n + 8]
    raise NoSafetensors("the header is no object")
