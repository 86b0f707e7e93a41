"""
wrong: one layer streams even where none should
check: spread, gate
rule: spread.none
phrase: One streams in any case
"""


def spread(layers, streamed):
    count = max(1, streamed)
    return [place * layers // count for place in range(count)]
