"""
wrong: escapes are taken from the end
check: decode_escapes
rule: decode_escapes.in_order
phrase: Escapes from the end
"""


def decode(coded):
    sign_mantissa, pairs, escapes = (
        torch.tensor(list(coded[part]), dtype=torch.int32) for part in ("sign_mantissa", "codes", "escapes")
    )
    codes = torch.stack([pairs & 15, pairs >> 4], dim=1).view(-1)[: coded["count"]]
    exponents = coded["base"] + codes
    exponents[codes == 15] = escapes.flip(0)
    return (sign_mantissa & 0x80) << 8 | exponents << 7 | sign_mantissa & 0x7F
