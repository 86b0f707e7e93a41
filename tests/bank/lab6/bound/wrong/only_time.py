"""
wrong: what binds is not said
check: bound
rule: bound.dict
phrase: The dict is not of the form
"""


def bound(resident, moved, link, memcpy=None):
    slowest = max(resident, moved / link, moved / memcpy if memcpy else 0)
    return {"time": slowest}
