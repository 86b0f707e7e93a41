"""
wrong: layers are counted from 1
check: spread, gate
rule: spread.from_0
phrase: There is no such layer
"""


def spread(layers, streamed):
    return [1 + (2 * place + 2) * layers // (2 * streamed) - 1 for place in range(streamed)]
