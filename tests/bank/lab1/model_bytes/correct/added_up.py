"""
note: adds layer after layer
"""


def model_bytes(config, bytes_per_layer):
    size = 4 if "32" in config["torch_dtype"] else 2
    total = config["vocab_size"] * config["hidden_size"] * size
    if not config["tie_word_embeddings"]:
        total += config["vocab_size"] * config["hidden_size"] * size
    total += config["hidden_size"] * size
    for _ in range(config["num_hidden_layers"]):
        total += bytes_per_layer
    return total
