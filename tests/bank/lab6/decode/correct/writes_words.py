"""
note: fills a tensor place by place
"""


def codes_of(coded):
    for byte in coded["codes"]:
        yield byte % 16
        yield byte // 16


def decode(coded):
    out = torch.zeros(coded["count"], dtype=torch.int64)
    used = 0
    for place, code in zip(range(coded["count"]), codes_of(coded)):
        exponent = coded["base"] + code
        if code == 15:
            exponent = coded["escapes"][used]
            used += 1
        low = coded["sign_mantissa"][place]
        out[place] = (low & 128) << 8 | exponent << 7 | low & 127
    return out
