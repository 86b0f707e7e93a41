"""
wrong: rounding takes a layer twice
check: spread, gate
rule: spread.growing
phrase: not
"""


def spread(layers, streamed):
    return [int(place * layers / streamed / 2) * 2 for place in range(streamed)] if streamed else []
