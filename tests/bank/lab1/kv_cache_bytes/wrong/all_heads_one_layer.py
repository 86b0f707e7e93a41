"""
wrong: a cache for each query head, and of one layer: two wrong factors at once
check: kv_cache_bytes, gate
phrase: One layer only; and All heads are cached
"""


def kv_cache_bytes(config, context, batch):
    head_dim = config["hidden_size"] // config["num_attention_heads"]
    bytes_per_element = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    return 2 * config["num_attention_heads"] * head_dim * bytes_per_element * context * batch
