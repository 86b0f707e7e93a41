"""
note: each in the middle of its part
"""


def spread(layers, streamed):
    return [(2 * place + 1) * layers // (2 * streamed) for place in range(streamed)]
