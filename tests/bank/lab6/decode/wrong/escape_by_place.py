"""
wrong: the escape by the weight's number
check: decode_escapes
rule: decode_escapes.no_gaps
phrase: An escape by its weight's number
"""


def decode(coded):
    sign_mantissa, pairs, escapes = (
        torch.tensor(list(coded[part]), dtype=torch.int32) for part in ("sign_mantissa", "codes", "escapes")
    )
    codes = torch.stack([pairs & 15, pairs >> 4], dim=1).view(-1)[: coded["count"]]
    exponents = coded["base"] + codes
    for place in (codes == 15).nonzero().view(-1).tolist():
        exponents[place] = escapes[min(place, len(escapes) - 1)]
    return (sign_mantissa & 0x80) << 8 | exponents << 7 | sign_mantissa & 0x7F
