"""
wrong: leaves the link's latency out
check: tokens_to_hide
phrase: The latency is left out
rule: tokens_to_hide.latency
"""

import math


def tokens_to_hide(layer_bytes, flops_per_token, gpu):
    transfer = layer_bytes / gpu.link_bandwidth
    floor = gpu.launch_time + layer_bytes / gpu.memory_bandwidth
    if floor >= transfer:
        return 1
    return max(1, math.ceil((transfer - gpu.launch_time) * gpu.flops / flops_per_token))
