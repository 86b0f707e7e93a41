"""
wrong: what lies outside gets the nearest code
check: encode_escapes
rule: encode_escapes.escape
phrase: exponent
"""


def encode(bits):
    exponents = bits >> 7 & 0xFF
    counts = torch.bincount(exponents, minlength=256)
    base = int(counts.unfold(0, 15, 1).sum(1).argmax())
    outside = (exponents < base) | (exponents > base + 14)
    codes = (exponents - base).clamp(0, 14)
    if len(codes) % 2:
        codes = torch.cat([codes, codes.new_zeros(1)])
    return {
        "base": base,
        "count": len(bits),
        "sign_mantissa": bytes((bits >> 8 & 0x80 | bits & 0x7F).tolist()),
        "codes": bytes((codes[::2] | codes[1::2] << 4).tolist()),
        "escapes": b"",
    }
