"""
wrong: context squared, as for attention scores
check: kv_cache_bytes, gate
phrase: The context is squared
rule: kv_cache_bytes.context
"""


def kv_cache_bytes(config, context, batch):
    head_dim = config["hidden_size"] // config["num_attention_heads"]
    bytes_per_element = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    per_token = 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * head_dim * bytes_per_element
    return per_token * context * context * batch
