"""
note: NumPy alone
"""

import numpy as np


def encode(bits):
    given = bits.numpy().astype(np.int64)
    exponents = (given >> 7) & 255
    base = max(range(242), key=lambda start: ((exponents >= start) & (exponents < start + 15)).sum())
    codes = np.where((exponents >= base) & (exponents < base + 15), exponents - base, 15).astype(np.uint8)
    codes = np.pad(codes, (0, len(codes) % 2))
    return {
        "escapes": exponents[codes[: len(given)] == 15].astype(np.uint8).tobytes(),
        "codes": (codes[0::2] + 16 * codes[1::2]).astype(np.uint8).tobytes(),
        "sign_mantissa": ((given >> 15 << 7) + given % 128).astype(np.uint8).tobytes(),
        "count": np.int64(len(given)),
        "base": np.uint8(base),
    }
