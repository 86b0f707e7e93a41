"""
note: a table of shapes, slower
"""


def layer_bytes(cfg):
    h = cfg["hidden_size"]
    d = h // cfg["num_attention_heads"]
    shapes = {
        "input_layernorm": [h],
        "q_proj.weight": [cfg["num_attention_heads"] * d, h],
        "q_proj.bias": [cfg["num_attention_heads"] * d],
        "o_proj.weight": [h, cfg["num_attention_heads"] * d],
        "post_attention_layernorm": [h],
        "gate_proj": [cfg["intermediate_size"], h],
        "up_proj": [cfg["intermediate_size"], h],
        "down_proj": [h, cfg["intermediate_size"]],
    }
    for name in ("k", "v"):
        shapes[f"{name}_proj.weight"] = [cfg["num_key_value_heads"] * d, h]
        shapes[f"{name}_proj.bias"] = [cfg["num_key_value_heads"] * d]
    total = 0
    for shape in shapes.values():
        elements = 1
        for length in shape:
            elements *= length
        total += elements
    return total * (4 if cfg["torch_dtype"] == "float32" else 2)
