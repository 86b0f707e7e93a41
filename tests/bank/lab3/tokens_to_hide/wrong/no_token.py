"""
wrong: nothing to compute
check: tokens_to_hide
phrase: No token at all
rule: tokens_to_hide.at_least_1
"""

import math


def tokens_to_hide(layer_bytes, flops_per_token, gpu):
    transfer = gpu.link_latency + layer_bytes / gpu.link_bandwidth
    floor = gpu.launch_time + layer_bytes / gpu.memory_bandwidth
    if floor >= transfer:
        return 0
    return max(0, math.ceil((transfer - gpu.launch_time) * gpu.flops / flops_per_token))
