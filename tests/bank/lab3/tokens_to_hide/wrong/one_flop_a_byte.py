"""
wrong: takes one FLOP a byte for granted
check: tokens_to_hide
phrase: One FLOP a byte is taken for granted
rule: tokens_to_hide.flops
"""

import math


def tokens_to_hide(layer_bytes, flops_per_token, gpu):
    transfer = gpu.link_latency + layer_bytes / gpu.link_bandwidth
    floor = gpu.launch_time + layer_bytes / gpu.memory_bandwidth
    if floor >= transfer:
        return 1
    return max(1, math.ceil((transfer - gpu.launch_time) * gpu.flops / layer_bytes))
