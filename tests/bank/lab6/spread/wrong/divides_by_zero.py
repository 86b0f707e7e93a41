"""
wrong: none is not thought of
check: spread, gate
rule: spread.none
phrase: It raised ZeroDivisionError
"""


def spread(layers, streamed):
    step = layers / streamed
    return [int(place * step + 1e-9) for place in range(streamed)]
