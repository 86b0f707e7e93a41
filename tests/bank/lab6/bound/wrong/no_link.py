"""
wrong: a staged layer is thought to be there once it is copied by the host
check: bound
rule: bound.link
phrase: The host's copying in place of the link
"""


def bound(resident, moved, link, memcpy=None):
    rate, name = (link, "link") if memcpy is None else (memcpy, "memcpy")
    if moved / rate > resident:
        return {"time": moved / rate, "binds": name}
    return {"time": resident, "binds": "computing"}
