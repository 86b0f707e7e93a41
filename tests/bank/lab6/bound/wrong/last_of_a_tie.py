"""
wrong: on a tie the last one is named
check: bound
rule: bound.tie
phrase: A tie goes to the last
"""


def bound(resident, moved, link, memcpy=None):
    time, binds = resident, "computing"
    if moved / link >= time:
        time, binds = moved / link, "link"
    if memcpy is not None and moved / memcpy >= time:
        time, binds = moved / memcpy, "memcpy"
    return {"time": time, "binds": binds}
