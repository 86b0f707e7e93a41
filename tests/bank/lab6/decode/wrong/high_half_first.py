"""
wrong: the high half is read first
check: decode, decode_escapes
rule: decode.low_first
phrase: The high half first
"""


def decode(coded):
    sign_mantissa, pairs, escapes = (
        torch.tensor(list(coded[part]), dtype=torch.int32) for part in ("sign_mantissa", "codes", "escapes")
    )
    codes = torch.stack([pairs >> 4, pairs & 15], dim=1).view(-1)[: coded["count"]]
    exponents = coded["base"] + codes
    exponents[codes == 15] = escapes
    return (sign_mantissa & 0x80) << 8 | exponents << 7 | sign_mantissa & 0x7F
