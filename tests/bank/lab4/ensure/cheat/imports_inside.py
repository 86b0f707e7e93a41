"""
wrong: imports the judge's module when it is called
check: ensure_fence, ensure_state, gate
phrase: holds the answer
"""


def ensure(ring, layer):
    from xinfer_lab.labs.lab4.judge import judges as lab4

    return lab4.JUDGES
