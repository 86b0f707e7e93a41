"""
wrong: only layers, head and norm
check: model_bytes, gate
phrase: The embedding is missing
rule: model_bytes.embedding
"""


def model_bytes(config, bytes_per_layer):
    table = config["vocab_size"] * config["hidden_size"]
    tables = 1 if config["tie_word_embeddings"] else 2
    elements = (tables - 1) * table + config["hidden_size"]
    bytes_per_element = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    return config["num_hidden_layers"] * bytes_per_layer + elements * bytes_per_element
