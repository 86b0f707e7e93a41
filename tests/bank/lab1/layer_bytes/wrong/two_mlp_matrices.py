"""
wrong: the MLP is taken to be an ungated one
check: layer_bytes, gate
phrase: Two matrices in the MLP
rule: layer_bytes.mlp
"""


def layer_bytes(config):
    hidden, intermediate = config["hidden_size"], config["intermediate_size"]
    head_dim = hidden // config["num_attention_heads"]
    q = config["num_attention_heads"] * head_dim
    kv = config["num_key_value_heads"] * head_dim
    attention = (q * hidden + q) + 2 * (kv * hidden + kv) + hidden * q
    mlp = 2 * intermediate * hidden
    norms = 2 * hidden
    bytes_per_element = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    return (attention + mlp + norms) * bytes_per_element
