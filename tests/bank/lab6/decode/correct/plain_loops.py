"""
note: an iterator over the escapes
"""


def decode(coded):
    rest = iter(coded["escapes"])
    patterns = []
    for place, sign_mantissa in enumerate(coded["sign_mantissa"]):
        pair = coded["codes"][place // 2]
        code = pair & 15 if place % 2 == 0 else pair >> 4
        exponent = next(rest) if code == 15 else coded["base"] + code
        patterns.append((sign_mantissa >> 7 << 15) + (exponent << 7) + (sign_mantissa & 127))
    return torch.tensor(patterns)
