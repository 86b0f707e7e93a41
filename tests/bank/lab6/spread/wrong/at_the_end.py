"""
wrong: the last layers stream
check: spread
rule: spread.even
phrase: All at the end
"""


def spread(layers, streamed):
    return list(range(layers - streamed, layers))
