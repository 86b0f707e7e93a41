"""
wrong: leaves latency and launch out
check: tokens_to_hide
phrase: Latency and launch are left out
"""

import math


def tokens_to_hide(layer_bytes, flops_per_token, gpu):
    transfer = layer_bytes / gpu.link_bandwidth
    floor = layer_bytes / gpu.memory_bandwidth
    if floor >= transfer:
        return 1
    return max(1, math.ceil(transfer * gpu.flops / flops_per_token))
