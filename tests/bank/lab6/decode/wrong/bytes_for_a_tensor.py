"""
wrong: the patterns as bytes
check: decode, decode_escapes
rule: decode.tensor
phrase: This is no tensor of patterns
"""

import struct


def decode(coded):
    parts = ("sign_mantissa", "codes", "escapes")
    sign_mantissa, pairs, escapes = (torch.tensor(list(coded[part]), dtype=torch.int32) for part in parts)
    codes = torch.stack([pairs & 15, pairs >> 4], dim=1).view(-1)[: coded["count"]]
    exponents = coded["base"] + codes
    exponents[codes == 15] = escapes
    bits = (sign_mantissa & 0x80) << 8 | exponents << 7 | sign_mantissa & 0x7F
    return struct.pack(f"<{len(bits)}H", *bits.tolist())
