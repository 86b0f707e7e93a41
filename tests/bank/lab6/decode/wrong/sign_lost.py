"""
wrong: the sign is left out
check: decode, decode_escapes
rule: decode.sign
phrase: The sign is lost
"""


def decode(coded):
    sign_mantissa, pairs, escapes = (
        torch.tensor(list(coded[part]), dtype=torch.int32) for part in ("sign_mantissa", "codes", "escapes")
    )
    codes = torch.stack([pairs & 15, pairs >> 4], dim=1).view(-1)[: coded["count"]]
    exponents = coded["base"] + codes
    exponents[codes == 15] = escapes
    return exponents << 7 | sign_mantissa & 0x7F
