"""
wrong: uses the package's own
check: encode
phrase: module that holds the answer
"""


def encode(bits):
    from xinfer_lab.residency.codec.encode import encode as given

    coding, encoded = given(bits.to(torch.int16).view(torch.bfloat16), 4)
    return {"base": coding.base, "count": len(bits), "sign_mantissa": b"", "codes": b"", "escapes": b""}
