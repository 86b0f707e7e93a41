"""
wrong: the layers' bytes are multiplied by the element size once more
check: model_bytes, gate
phrase: The layers are multiplied by the bytes of an element twice
rule: model_bytes.given_bytes
"""


def model_bytes(config, bytes_per_layer):
    table = config["vocab_size"] * config["hidden_size"]
    tables = 1 if config["tie_word_embeddings"] else 2
    elements = tables * table + config["hidden_size"]
    bytes_per_element = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    return (config["num_hidden_layers"] * bytes_per_layer + elements) * bytes_per_element
