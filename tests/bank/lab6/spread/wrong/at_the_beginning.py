"""
wrong: the first layers stream
check: spread
rule: spread.even
phrase: All at the beginning
"""


def spread(layers, streamed):
    return list(range(streamed))
