"""
wrong: None is divided by
check: bound, gate
rule: bound.no_memcpy
phrase: It raised TypeError
"""


def bound(resident, moved, link, memcpy=None):
    times = {"computing": resident, "link": moved / link, "memcpy": moved / memcpy}
    binds = max(times, key=times.get)
    return {"time": times[binds], "binds": binds}
