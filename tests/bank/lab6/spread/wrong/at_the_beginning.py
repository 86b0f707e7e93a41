"""
wrong: the first layers stream
check: spread
phrase: All at the beginning
"""


def spread(layers, streamed):
    return list(range(streamed))
