"""
note: a fraction is a number
"""

from fractions import Fraction


def bound(resident, moved, link, memcpy=None):
    times = {"computing": resident, "link": Fraction(moved) / Fraction(link)}
    if memcpy is not None:
        times["memcpy"] = moved / memcpy
    binds = max(times, key=times.get)
    return {"time": times[binds], "binds": binds}
