"""
wrong: from the first to the last layer
check: spread
rule: spread.around
phrase: From the first to the last layer
"""


def spread(layers, streamed):
    if streamed < 2:
        return [0] * streamed
    return [round(place * (layers - 1) / (streamed - 1)) for place in range(streamed)]
