"""
wrong: numbers in place of patterns
check: decode, decode_escapes
rule: decode.tensor
phrase: The tensor has another form
"""


def decode(coded):
    sign_mantissa, pairs, escapes = (
        torch.tensor(list(coded[part]), dtype=torch.int32) for part in ("sign_mantissa", "codes", "escapes")
    )
    codes = torch.stack([pairs & 15, pairs >> 4], dim=1).view(-1)[: coded["count"]]
    exponents = coded["base"] + codes
    exponents[codes == 15] = escapes
    whole = (sign_mantissa & 0x80) << 8 | exponents << 7 | sign_mantissa & 0x7F
    return whole.to(torch.int16).view(torch.bfloat16)
