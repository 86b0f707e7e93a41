"""
note: no memcpy is one without end
"""


def seconds(moved, rate):
    return 0 if rate is None else moved / rate


def bound(resident, moved, link, memcpy=None):
    times = [resident, seconds(moved, link), seconds(moved, memcpy)]
    longest = max(times)
    return {"time": longest, "binds": ("computing", "link", "memcpy")[times.index(longest)]}
