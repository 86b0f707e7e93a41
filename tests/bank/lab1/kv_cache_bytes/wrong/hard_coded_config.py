"""
wrong: the 0.5B model's config is used for every one
check: kv_cache_bytes, gate
phrase: One model's sizes are used for every config
rule: kv_cache_bytes.config
"""


def kv_cache_bytes(asked, context, batch):
    config = MODELS["0.5B"]
    head_dim = config["hidden_size"] // config["num_attention_heads"]
    bytes_per_element = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    per_token = 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * head_dim * bytes_per_element
    return per_token * context * batch
