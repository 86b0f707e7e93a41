"""
note: a loop over layers
"""


def kv_cache_bytes(config, context, batch):
    width = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    kv = config["hidden_size"] // config["num_attention_heads"] * config["num_key_value_heads"]
    total = 0
    for layer in range(config["num_hidden_layers"]):
        keys = batch * context * kv * width
        values = batch * context * kv * width
        total += keys + values
    return total
