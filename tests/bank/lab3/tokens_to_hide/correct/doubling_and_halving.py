"""
note: searches with the GPU's own times
"""

from xinfer_lab.device.kernels import Cost


def hidden(layer_bytes, flops_per_token, gpu, tokens):
    computing = gpu.dispatch_time(Cost(tokens * flops_per_token, layer_bytes))
    return gpu.copy_time(layer_bytes) <= computing


def tokens_to_hide(layer_bytes, flops_per_token, gpu):
    high = 1
    while not hidden(layer_bytes, flops_per_token, gpu, high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if hidden(layer_bytes, flops_per_token, gpu, middle):
            high = middle
        else:
            low = middle
    return high
