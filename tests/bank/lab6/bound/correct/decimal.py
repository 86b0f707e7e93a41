"""
note: decimals
"""

from decimal import Decimal, getcontext


def bound(resident, moved, link, memcpy=None):
    getcontext().prec = 50
    times = {"computing": Decimal(resident), "link": Decimal(moved) / Decimal(link)}
    if memcpy is not None:
        times["memcpy"] = Decimal(moved) / Decimal(memcpy)
    longest = max(map(float, times.values()))
    name = [name for name, time in times.items() if float(time) == longest][0]
    return {"time": times[name], "binds": name}
