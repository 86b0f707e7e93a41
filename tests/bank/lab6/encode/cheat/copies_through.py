"""
wrong: the weights themselves as escapes of a format of its own
check: encode_escapes
phrase: another length
"""


def encode(bits):
    return {
        "base": 0,
        "count": len(bits),
        "sign_mantissa": bits.to(torch.int16).numpy().tobytes(),
        "codes": b"",
        "escapes": b"",
    }
