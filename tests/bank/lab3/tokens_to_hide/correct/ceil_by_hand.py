"""
note: closed form, rounded up by hand
"""


def tokens_to_hide(layer_bytes, flops_per_token, gpu):
    left = gpu.link_latency + layer_bytes / gpu.link_bandwidth - gpu.launch_time
    if layer_bytes / gpu.memory_bandwidth >= left:
        return 1
    tokens = int(left * gpu.flops / flops_per_token)
    if tokens * flops_per_token / gpu.flops < left:
        tokens += 1
    return max(tokens, 1)
