"""
wrong: the layers are left out
check: model_bytes, gate
phrase: The layers are missing
rule: model_bytes.all_layers
"""


def model_bytes(config, bytes_per_layer):
    table = config["vocab_size"] * config["hidden_size"]
    tables = 1 if config["tie_word_embeddings"] else 2
    elements = tables * table + config["hidden_size"]
    bytes_per_element = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    return elements * bytes_per_element
