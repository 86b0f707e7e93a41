"""
wrong: the layers that stay are returned
check: spread, gate
rule: spread.count
phrase: Those that stay are spread
"""


def spread(layers, streamed):
    stay = layers - streamed
    return [place * layers // stay for place in range(stay)] if stay else []
