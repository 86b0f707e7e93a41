"""
note: a helper of its own
"""


def linear(outputs, inputs, bias=False):
    return outputs * inputs + (outputs if bias else 0)


def layer_bytes(config):
    hidden = config["hidden_size"]
    kv = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
    elements = linear(hidden, hidden, True) + linear(kv, hidden, True) * 2 + linear(hidden, hidden)
    elements += 3 * linear(config["intermediate_size"], hidden) + hidden + hidden
    sizes = dict(bfloat16=2, float16=2, float32=4)
    return sizes[config["torch_dtype"]] * elements
