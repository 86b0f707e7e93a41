"""
wrong: takes the GPU's own memory for the link
check: tokens_to_hide
phrase: The wrong bandwidth
rule: tokens_to_hide.link
"""

import math


def tokens_to_hide(layer_bytes, flops_per_token, gpu):
    transfer = gpu.link_latency + layer_bytes / gpu.memory_bandwidth
    floor = gpu.launch_time + layer_bytes / gpu.memory_bandwidth
    if floor >= transfer:
        return 1
    return max(1, math.ceil((transfer - gpu.launch_time) * gpu.flops / flops_per_token))
