"""
wrong: the bandwidth is divided by the bytes
check: bound
rule: bound.bytes_over_rate
phrase: Bandwidth over bytes
"""


def bound(resident, moved, link, memcpy=None):
    times = {"computing": resident, "link": link / moved if moved else link}
    binds = max(times, key=times.get)
    return {"time": times[binds], "binds": binds}
