"""
wrong: leaves the launch out
check: tokens_to_hide
phrase: The launch is left out
rule: tokens_to_hide.launch
"""

import math


def tokens_to_hide(layer_bytes, flops_per_token, gpu):
    transfer = gpu.link_latency + layer_bytes / gpu.link_bandwidth
    floor = layer_bytes / gpu.memory_bandwidth
    if floor >= transfer:
        return 1
    return max(1, math.ceil(transfer * gpu.flops / flops_per_token))
