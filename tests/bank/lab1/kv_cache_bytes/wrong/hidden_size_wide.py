"""
wrong: each key/value head is taken to be hidden_size wide
check: kv_cache_bytes, gate
phrase: Each kv head is hidden_size wide
rule: kv_cache_bytes.head_dim
"""


def kv_cache_bytes(config, context, batch):
    head_dim = config["hidden_size"] // config["num_attention_heads"]
    bytes_per_element = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    per_token = (
        2 * config["num_hidden_layers"] * config["num_key_value_heads"] * config["hidden_size"] * bytes_per_element
    )
    return per_token * context * batch
