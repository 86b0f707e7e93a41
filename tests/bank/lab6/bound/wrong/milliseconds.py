"""
wrong: rounds to milliseconds
check: bound
rule: bound.seconds
phrase: The bound is another one
"""


def bound(resident, moved, link, memcpy=None):
    times = {"computing": resident, "link": moved / link}
    if memcpy is not None:
        times["memcpy"] = moved / memcpy
    binds = max(times, key=times.get)
    return {"time": round(times[binds], 3), "binds": binds}
