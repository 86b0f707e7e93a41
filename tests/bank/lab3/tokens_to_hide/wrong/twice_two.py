"""
wrong: puts in the factor 2 a second time
check: tokens_to_hide
phrase: Two FLOPs a FLOP
rule: tokens_to_hide.flops
"""

import math


def tokens_to_hide(layer_bytes, flops_per_token, gpu):
    transfer = gpu.link_latency + layer_bytes / gpu.link_bandwidth
    floor = gpu.launch_time + layer_bytes / gpu.memory_bandwidth
    if floor >= transfer:
        return 1
    return max(1, math.ceil((transfer - gpu.launch_time) * gpu.flops / (2 * flops_per_token)))
