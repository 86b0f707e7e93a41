"""
note: numbers of torch, and an exact fraction on the way
"""

from fractions import Fraction

import torch


def layer_bytes(config):
    hidden, intermediate = config["hidden_size"], config["intermediate_size"]
    share = Fraction(config["num_key_value_heads"], config["num_attention_heads"])
    kv = int(share * hidden)
    tensors = [
        hidden,
        hidden * hidden,
        hidden,
        2 * kv * hidden,
        2 * kv,
        hidden * hidden,
        hidden,
        3 * intermediate * hidden,
    ]
    size = 4 if config["torch_dtype"] == "float32" else 2
    return torch.tensor(tensors, dtype=torch.int64).sum() * size
