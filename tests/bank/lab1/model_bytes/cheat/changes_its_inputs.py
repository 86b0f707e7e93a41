"""
wrong: makes the config easier before it answers
check: model_bytes
phrase: This is not the right number of bytes
"""


def model_bytes(config, bytes_per_layer):
    config["num_hidden_layers"] = config["vocab_size"] = config["hidden_size"] = 0
    return 0
