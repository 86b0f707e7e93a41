"""
wrong: what the host copies is left out
check: bound
rule: bound.memcpy
phrase: The host's copying is left out
"""


def bound(resident, moved, link, memcpy=None):
    if moved / link > resident:
        return {"time": moved / link, "binds": "link"}
    return {"time": resident, "binds": "computing"}
