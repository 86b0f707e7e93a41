"""
note: divides last
"""

import math


def kv_cache_bytes(config, context=1, batch=1):
    heads = config["num_attention_heads"]
    factors = [2, config["num_hidden_layers"], config["num_key_value_heads"], config["hidden_size"], context, batch]
    return math.prod(factors) // heads * (2 if config["torch_dtype"].endswith("16") else 4)
