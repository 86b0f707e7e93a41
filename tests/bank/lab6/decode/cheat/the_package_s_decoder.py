"""
wrong: uses the package's own
check: decode
phrase: module that holds the answer
"""


def decode(coded):
    from xinfer_lab.residency.codec.decode import decode_into

    return decode_into
