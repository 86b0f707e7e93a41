"""
wrong: never ends
check: prefetch, prefetch_ahead, gate
phrase: It did not come to an end
"""


def prefetch(ring):
    while True:
        pass
