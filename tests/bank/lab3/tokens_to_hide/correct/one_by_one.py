"""
note: slow: tries 1, 2, 3, ...
"""


def tokens_to_hide(nbytes, flops, gpu):
    transfer = gpu.link_latency + nbytes / gpu.link_bandwidth
    reading = nbytes / gpu.memory_bandwidth
    tokens = 1
    while gpu.launch_time + max(tokens * flops / gpu.flops, reading) < transfer:
        tokens += 1
    return tokens
