"""
wrong: grouped heads are ignored
check: layer_bytes, gate
phrase: k and v are as wide as q
rule: layer_bytes.grouped
"""


def layer_bytes(config):
    hidden, intermediate = config["hidden_size"], config["intermediate_size"]
    head_dim = hidden // config["num_attention_heads"]
    q = config["num_attention_heads"] * head_dim
    kv = q
    attention = (q * hidden + q) + 2 * (kv * hidden + kv) + hidden * q
    mlp = 3 * intermediate * hidden
    norms = 2 * hidden
    bytes_per_element = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    return (attention + mlp + norms) * bytes_per_element
