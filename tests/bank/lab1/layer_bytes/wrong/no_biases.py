"""
wrong: the biases of q, k and v are left out
check: layer_bytes, gate
phrase: The biases are missing
rule: layer_bytes.biases
"""


def layer_bytes(config):
    hidden, intermediate = config["hidden_size"], config["intermediate_size"]
    head_dim = hidden // config["num_attention_heads"]
    q = config["num_attention_heads"] * head_dim
    kv = config["num_key_value_heads"] * head_dim
    attention = q * hidden + 2 * kv * hidden + hidden * q
    mlp = 3 * intermediate * hidden
    norms = 2 * hidden
    bytes_per_element = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    return (attention + mlp + norms) * bytes_per_element
