"""
wrong: whole seconds where there are more bytes than a float counts
check: bound
rule: bound.seconds
phrase: The bound is another one
"""


def bound(resident, moved, link, memcpy=None):
    times = {"computing": resident, "link": moved // link if moved > 2**53 else moved / link}
    if memcpy is not None:
        times["memcpy"] = moved / memcpy
    binds = max(times, key=times.get)
    return {"time": times[binds], "binds": binds}
