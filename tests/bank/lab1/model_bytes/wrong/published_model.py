"""
wrong: the sizes of one published model are used for every config
check: model_bytes, gate
phrase: One model's sizes are used
rule: model_bytes.config
"""


def model_bytes(config, bytes_per_layer):
    config = {"vocab_size": 152064, "hidden_size": 3584, "num_hidden_layers": 28, "torch_dtype": "bfloat16"}
    config["tie_word_embeddings"] = False
    table = config["vocab_size"] * config["hidden_size"]
    tables = 1 if config["tie_word_embeddings"] else 2
    elements = tables * table + config["hidden_size"]
    bytes_per_element = {"bfloat16": 2, "float16": 2, "float32": 4}[config["torch_dtype"]]
    return config["num_hidden_layers"] * bytes_per_layer + elements * bytes_per_element
