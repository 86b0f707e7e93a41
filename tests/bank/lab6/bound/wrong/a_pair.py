"""
wrong: a tuple is returned in place of a dict
check: bound, gate
rule: bound.dict
phrase: The dict is not of the form
"""


def bound(resident, moved, link, memcpy=None):
    times = {"computing": resident, "link": moved / link}
    if memcpy is not None:
        times["memcpy"] = moved / memcpy
    binds = max(times, key=times.get)
    return times[binds], binds
