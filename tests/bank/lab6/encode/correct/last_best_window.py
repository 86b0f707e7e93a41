"""
note: of several best windows the last
"""


def best_base(exponents):
    counts = torch.bincount(exponents, minlength=256)
    held = [int(counts[start : start + 15].sum()) for start in range(242)]
    return 241 - held[::-1].index(max(held))


def encode(bits):
    exponents = (bits // 128) % 256
    base = best_base(exponents)
    inside = (exponents >= base) & (exponents <= base + 14)
    codes = [int(e) - base if ok else 15 for e, ok in zip(exponents, inside)] + [0] * (len(bits) % 2)
    return {
        "base": base,
        "count": int(bits.numel()),
        "sign_mantissa": bytes(((bits >= 32768) * 128 + bits % 128).tolist()),
        "codes": bytes(low + high * 16 for low, high in zip(codes[0::2], codes[1::2])),
        "escapes": bytes(exponents[~inside].tolist()),
    }
