"""
wrong: codes are taken for exponents
check: decode, decode_escapes
rule: decode.base
phrase: The base is forgotten
"""


def decode(coded):
    sign_mantissa, pairs, escapes = (
        torch.tensor(list(coded[part]), dtype=torch.int32) for part in ("sign_mantissa", "codes", "escapes")
    )
    codes = torch.stack([pairs & 15, pairs >> 4], dim=1).view(-1)[: coded["count"]]
    exponents = codes.clone()
    exponents[codes == 15] = escapes
    return (sign_mantissa & 0x80) << 8 | exponents << 7 | sign_mantissa & 0x7F
