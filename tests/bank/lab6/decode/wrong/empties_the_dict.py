"""
wrong: empties the dict that it was given
check: decode, decode_escapes
rule: decode.keeps_inputs
phrase: It overwrites coded
"""


def decode(coded):
    found = []
    places = iter(range(coded["count"]))
    signs, pairs, escapes = (list(coded[part]) for part in ("sign_mantissa", "codes", "escapes"))
    base = coded.pop("base")
    for place in places:
        code = pairs[place // 2] >> 4 * (place % 2) & 15
        exponent = escapes.pop(0) if code == 15 else base + code
        found.append((signs[place] & 0x80) << 8 | exponent << 7 | signs[place] & 0x7F)
    return torch.tensor(found)
