"""
wrong: the list falls
check: spread, gate
rule: spread.growing
phrase: The last one first
"""


def spread(layers, streamed):
    return [place * layers // streamed for place in range(streamed)][::-1]
