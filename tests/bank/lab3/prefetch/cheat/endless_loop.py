"""
wrong: never ends
check: prefetch, prefetch_ahead, gate
phrase: took too long
"""


def prefetch(ring):
    while True:
        pass
