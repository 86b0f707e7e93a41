"""
wrong: the dtype is not looked at
check: kv_cache_bytes, gate
phrase: Every weight is taken to be two bytes
rule: kv_cache_bytes.dtype
"""


def kv_cache_bytes(config, context, batch):
    head_dim = config["hidden_size"] // config["num_attention_heads"]
    bytes_per_element = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    per_token = 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * head_dim * 2
    return per_token * context * batch
