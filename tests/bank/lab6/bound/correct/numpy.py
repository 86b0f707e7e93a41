"""
note: scalars of NumPy
"""

import numpy as np


def bound(resident, moved, link, memcpy=None):
    times = np.array([resident, moved / link, -1.0 if memcpy is None else moved / memcpy])
    place = int(np.argmax(times))
    return {"time": times[place], "binds": np.array(["computing", "link", "memcpy"])[place]}
