"""
note: bytearrays, and numpy in place of torch
"""


def encode(bits):
    import numpy as np

    patterns = bits.numpy().astype(np.uint32)
    exponents = (patterns >> 7) & 0xFF
    held = np.convolve(np.bincount(exponents, minlength=256), np.ones(15, dtype=int), "valid")
    base = int(np.argmax(held))
    codes = np.where((exponents - base) < 15, exponents - base, 15).astype(np.uint8)
    padded = np.zeros(len(codes) + len(codes) % 2, dtype=np.uint8)
    padded[: len(codes)] = codes
    return {
        "base": base,
        "count": len(patterns),
        "sign_mantissa": bytearray((((patterns >> 8) & 0x80) | (patterns & 0x7F)).astype(np.uint8).tobytes()),
        "codes": bytearray((padded[0::2] | (padded[1::2] << 4)).tobytes()),
        "escapes": bytearray(exponents[codes == 15].astype(np.uint8).tobytes()),
    }
