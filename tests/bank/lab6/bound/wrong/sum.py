"""
wrong: the times are added up
check: bound
rule: bound.side_by_side
phrase: Times added up
"""


def bound(resident, moved, link, memcpy=None):
    times = [("computing", resident), ("link", moved / link)]
    if memcpy is not None:
        times.append(("memcpy", moved / memcpy))
    return {"time": sum(time for _, time in times), "binds": max(times, key=lambda pair: pair[1])[0]}
