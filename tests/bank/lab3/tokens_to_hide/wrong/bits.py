"""
wrong: bits for bytes
check: tokens_to_hide
phrase: Bits, not bytes
rule: tokens_to_hide.layer_bytes
"""

import math


def tokens_to_hide(layer_bytes, flops_per_token, gpu):
    transfer = gpu.link_latency + 8 * layer_bytes / gpu.link_bandwidth
    floor = gpu.launch_time + layer_bytes / gpu.memory_bandwidth
    if floor >= transfer:
        return 1
    return max(1, math.ceil((transfer - gpu.launch_time) * gpu.flops / flops_per_token))
