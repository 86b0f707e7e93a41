"""
wrong: tied and untied the wrong way round
check: model_bytes, gate
phrase: Tied and untied are swapped
rule: model_bytes.tied
"""


def model_bytes(config, bytes_per_layer):
    table = config["vocab_size"] * config["hidden_size"]
    tables = 2 if config["tie_word_embeddings"] else 1
    elements = tables * table + config["hidden_size"]
    bytes_per_element = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    return config["num_hidden_layers"] * bytes_per_layer + elements * bytes_per_element
