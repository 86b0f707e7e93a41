"""
wrong: a step that is rounded down
check: spread
rule: spread.even
phrase: A step that is rounded down
"""


def spread(layers, streamed):
    return [place * (layers // streamed) for place in range(streamed)] if streamed else []
