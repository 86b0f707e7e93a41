"""
wrong: never comes back
check: ensure_fence
phrase: come to an end
"""


def ensure(ring, layer):
    while True:
        pass
