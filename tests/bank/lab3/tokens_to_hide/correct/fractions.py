"""
note: exact fractions, and NumPy's integer
"""

import math
from fractions import Fraction

import numpy as np


def tokens_to_hide(layer_bytes, flops_per_token, gpu):
    link, memory = Fraction(gpu.link_bandwidth), Fraction(gpu.memory_bandwidth)
    left = Fraction(gpu.link_latency) + layer_bytes / link - Fraction(gpu.launch_time)
    if layer_bytes / memory >= left:
        return np.int64(1)
    return np.int64(max(1, math.ceil(left * Fraction(gpu.flops) / flops_per_token)))
