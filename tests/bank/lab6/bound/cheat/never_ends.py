"""
wrong: looks for the bound without end
check: bound
phrase: took too long
"""


def bound(resident, moved, link, memcpy=None):
    time = 0
    while time != resident + 0.5:
        time += 1
    return {"time": time, "binds": "link"}
