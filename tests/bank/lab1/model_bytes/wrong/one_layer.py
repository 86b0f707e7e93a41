"""
wrong: one layer in place of all
check: model_bytes, gate
phrase: Only one layer is counted
rule: model_bytes.all_layers
"""


def model_bytes(config, bytes_per_layer):
    table = config["vocab_size"] * config["hidden_size"]
    tables = 1 if config["tie_word_embeddings"] else 2
    elements = tables * table + config["hidden_size"]
    bytes_per_element = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    return bytes_per_layer + elements * bytes_per_element
