"""
wrong: the config gets an entry that was not there
check: model_bytes
phrase: It overwrites config
rule: model_bytes.keeps_inputs
"""


def model_bytes(config, bytes_per_layer):
    table = config["vocab_size"] * config["hidden_size"]
    config["table"] = table
    tables = 1 if config["tie_word_embeddings"] else 2
    elements = tables * table + config["hidden_size"]
    bytes_per_element = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    return config["num_hidden_layers"] * bytes_per_layer + elements * bytes_per_element
