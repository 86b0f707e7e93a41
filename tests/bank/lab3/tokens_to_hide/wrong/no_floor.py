"""
wrong: forgets that the weights have to be read
check: tokens_to_hide
phrase: Reading the weights is left out
rule: tokens_to_hide.reading
"""

import math


def tokens_to_hide(layer_bytes, flops_per_token, gpu):
    transfer = gpu.link_latency + layer_bytes / gpu.link_bandwidth
    floor = gpu.launch_time + layer_bytes / gpu.memory_bandwidth
    if False:
        return 1
    return max(1, math.ceil((transfer - gpu.launch_time) * gpu.flops / flops_per_token))
