"""
wrong: imports what knows the truth
check: bound
phrase: module that holds the answer
"""


def bound(resident, moved, link, memcpy=None):
    from xinfer_lab.labs.lab6.judge.bound import BOUND

    return BOUND.truth({"resident": resident, "moved": moved, "link": link, "memcpy": memcpy})
