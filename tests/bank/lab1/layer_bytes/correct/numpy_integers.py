"""
note: returns a NumPy integer
"""

import numpy as np


def layer_bytes(config):
    h, i = np.int64(config["hidden_size"]), np.int64(config["intermediate_size"])
    kv = h // config["num_attention_heads"] * config["num_key_value_heads"]
    return (2 * h * h + h + 2 * kv * (h + 1) + 3 * h * i + 2 * h) * np.dtype(
        {"bfloat16": "float16"}.get(config["torch_dtype"], config["torch_dtype"])
    ).itemsize
