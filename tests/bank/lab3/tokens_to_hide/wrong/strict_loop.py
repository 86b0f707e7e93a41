"""
wrong: tries T in turn, and goes on while the two times are equal
check: tokens_to_hide
phrase: A tie is not taken for hidden
rule: tokens_to_hide.equal
"""


def tokens_to_hide(layer_bytes, flops_per_token, gpu):
    t_trans = gpu.link_latency + layer_bytes / gpu.link_bandwidth
    reading = layer_bytes / gpu.memory_bandwidth
    tokens = 1
    while gpu.launch_time + max(tokens * flops_per_token / gpu.flops, reading) <= t_trans:
        tokens += 1
    return tokens
