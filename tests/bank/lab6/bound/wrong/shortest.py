"""
wrong: the shortest time is taken for the pass
check: bound
rule: bound.longest
phrase: The shortest binds
"""


def bound(resident, moved, link, memcpy=None):
    times = {"computing": resident, "link": moved / link}
    if memcpy is not None:
        times["memcpy"] = moved / memcpy
    binds = min(times, key=times.get)
    return {"time": times[binds], "binds": binds}
