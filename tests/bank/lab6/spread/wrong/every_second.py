"""
wrong: every second layer, whatever is asked for
check: spread, gate
rule: spread.count
phrase: not
"""


def spread(layers, streamed):
    return list(range(0, layers, 2))
