"""
wrong: the dtype is not looked at
check: model_bytes, gate
phrase: Every weight is taken to be two bytes
rule: model_bytes.dtype
"""


def model_bytes(config, bytes_per_layer):
    table = config["vocab_size"] * config["hidden_size"]
    tables = 1 if config["tie_word_embeddings"] else 2
    elements = tables * table + config["hidden_size"]
    bytes_per_element = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    return config["num_hidden_layers"] * bytes_per_layer + elements * 2
