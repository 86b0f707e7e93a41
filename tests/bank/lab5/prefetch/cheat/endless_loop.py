"""
wrong: never ends
check: prefetch, gate
phrase: It did not come to an end
"""


def prefetch(pool, page, ahead=True):
    while True:
        pass
