"""
wrong: never comes back
check: ensure_fence
phrase: took too long
"""


def ensure(ring, layer):
    while True:
        pass
