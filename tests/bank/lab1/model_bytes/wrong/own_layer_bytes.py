"""
wrong: the argument bytes_per_layer is not used
check: model_bytes
phrase: The argument bytes_per_layer is not used
rule: model_bytes.given_bytes
"""


def model_bytes(config, bytes_per_layer):
    table = config["vocab_size"] * config["hidden_size"]
    tables = 1 if config["tie_word_embeddings"] else 2
    elements = tables * table + config["hidden_size"]
    bytes_per_element = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    return config["num_hidden_layers"] * layer_bytes(config) + elements * bytes_per_element
