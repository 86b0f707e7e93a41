"""
wrong: the window is chosen by the first 200 weights
check: encode_escapes
rule: encode_escapes.best_window
phrase: larger than it has to be
"""


def encode(bits):
    exponents = bits >> 7 & 0xFF
    counts = torch.bincount(exponents[:200], minlength=256)
    base = int(counts.unfold(0, 15, 1).sum(1).argmax())
    outside = (exponents < base) | (exponents > base + 14)
    codes = torch.where(outside, 15, exponents - base)
    if len(codes) % 2:
        codes = torch.cat([codes, codes.new_zeros(1)])
    return {
        "base": base,
        "count": len(bits),
        "sign_mantissa": bytes((bits >> 8 & 0x80 | bits & 0x7F).tolist()),
        "codes": bytes((codes[::2] | codes[1::2] << 4).tolist()),
        "escapes": bytes(exponents[outside].tolist()),
    }
