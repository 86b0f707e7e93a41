"""
wrong: imports the package's own answer when it is called
check: prefetch, gate
phrase: module that holds the answer
"""


def prefetch(pool, page, ahead=True):
    from xinfer_lab.labs.lab5.parts.prefetch import prefetch as given

    return given(pool, page, ahead)
