"""
wrong: o_proj gets a bias as the other three have
check: layer_bytes, gate
phrase: o_proj has a bias
rule: layer_bytes.only_three_biases
"""


def layer_bytes(config):
    hidden, intermediate = config["hidden_size"], config["intermediate_size"]
    head_dim = hidden // config["num_attention_heads"]
    q = config["num_attention_heads"] * head_dim
    kv = config["num_key_value_heads"] * head_dim
    attention = (q * hidden + q) + 2 * (kv * hidden + kv) + hidden * q + hidden
    mlp = 3 * intermediate * hidden
    norms = 2 * hidden
    bytes_per_element = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    return (attention + mlp + norms) * bytes_per_element
