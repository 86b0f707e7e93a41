"""
wrong: does not take a tie for hidden
check: tokens_to_hide
phrase: A tie is not taken for hidden
rule: tokens_to_hide.equal
"""

import math


def tokens_to_hide(layer_bytes, flops_per_token, gpu):
    transfer = gpu.link_latency + layer_bytes / gpu.link_bandwidth
    floor = gpu.launch_time + layer_bytes / gpu.memory_bandwidth
    if floor >= transfer:
        return 1
    return max(1, math.floor((transfer - gpu.launch_time) * gpu.flops / flops_per_token) + 1)
