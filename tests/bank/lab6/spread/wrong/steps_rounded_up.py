"""
wrong: a step that is rounded up
check: spread, gate
rule: spread.even
phrase: not spread evenly
"""


def spread(layers, streamed):
    step = -(-layers // streamed) if streamed else 1
    return [place * step for place in range(streamed)]
