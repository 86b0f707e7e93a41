"""
note: a stable sort keeps the first of a tie
"""


def bound(resident, moved, link, memcpy=None):
    pairs = [(resident, "computing"), (moved / link, "link")]
    if memcpy:
        pairs.append((moved / memcpy, "memcpy"))
    time, binds = sorted(pairs, key=lambda pair: -pair[0])[0]
    return dict(binds=binds, time=time)
