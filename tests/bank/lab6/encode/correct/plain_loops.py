"""
note: lists and loops, no tensor operations
"""

from collections import Counter


def encode(bits):
    values = bits.tolist()
    counts = Counter(value >> 7 & 255 for value in values)
    base = max(range(242), key=lambda start: sum(counts[start + place] for place in range(15)))
    signs, codes, escapes = [], [], []
    for value in values:
        exponent = value >> 7 & 255
        signs.append((value >> 15) * 128 + value % 128)
        if base <= exponent < base + 15:
            codes.append(exponent - base)
        else:
            codes.append(15)
            escapes.append(exponent)
    codes.extend([0] * (len(codes) % 2))
    pairs = [codes[place] + 16 * codes[place + 1] for place in range(0, len(codes), 2)]
    return {
        "escapes": bytes(escapes),
        "codes": bytes(pairs),
        "sign_mantissa": bytes(signs),
        "count": len(values),
        "base": base,
    }
