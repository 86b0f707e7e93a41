"""
wrong: computing is taken to be hidden always
check: bound
rule: bound.computing
phrase: Computing is left out
"""


def bound(resident, moved, link, memcpy=None):
    times = {"link": moved / link}
    if memcpy is not None:
        times["memcpy"] = moved / memcpy
    binds = max(times, key=times.get)
    return {"time": times[binds], "binds": binds}
