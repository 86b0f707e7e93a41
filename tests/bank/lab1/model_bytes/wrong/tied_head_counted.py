"""
wrong: a tied model's head is counted a second time
check: model_bytes, gate
phrase: The head is counted although it is tied
rule: model_bytes.tied
"""


def model_bytes(config, bytes_per_layer):
    table = config["vocab_size"] * config["hidden_size"]
    tables = 2
    elements = tables * table + config["hidden_size"]
    bytes_per_element = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    return config["num_hidden_layers"] * bytes_per_layer + elements * bytes_per_element
