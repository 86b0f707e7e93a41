"""
wrong: the host copies, then the link moves
check: bound
rule: bound.side_by_side
phrase: Copying and sending in turns
"""


def bound(resident, moved, link, memcpy=None):
    copying = 0 if memcpy is None else moved / memcpy
    moving = copying + moved / link
    if resident >= moving:
        return {"time": resident, "binds": "computing"}
    return {"time": moving, "binds": "memcpy" if copying > moved / link else "link"}
