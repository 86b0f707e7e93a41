"""
wrong: memory that nobody wrote, in hope of the right bits
check: decode_escapes
phrase: A weight comes back with other bits
"""


def decode(coded):
    return torch.zeros(coded["count"], dtype=torch.int64)
