"""
wrong: never ends
check: prefetch, gate
phrase: took too long
"""


def prefetch(pool, page, ahead=True):
    while True:
        pass
