"""
note: the k-th escape by a running count
"""


def decode(coded):
    pairs = torch.frombuffer(bytearray(coded["codes"]), dtype=torch.uint8).long()
    codes = torch.empty(2 * len(pairs), dtype=torch.long)
    codes[0::2], codes[1::2] = pairs % 16, pairs // 16
    codes = codes[: coded["count"]]
    escapes = torch.tensor([*coded["escapes"], 0])
    number = (codes == 15).cumsum(0) - 1
    exponents = torch.where(codes == 15, escapes[number.clamp(min=0)], codes + coded["base"])
    low = torch.tensor(list(coded["sign_mantissa"]))
    return low // 128 * 32768 + exponents * 128 + low % 128
