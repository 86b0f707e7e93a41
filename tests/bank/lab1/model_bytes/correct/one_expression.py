"""
note: a lambda
"""

SIZES = {"bfloat16": 2, "float16": 2, "float32": 4}
model_bytes = lambda c, n: (
    n * c["num_hidden_layers"]
    + SIZES[c["torch_dtype"]] * c["hidden_size"] * (c["vocab_size"] * (2 - c["tie_word_embeddings"]) + 1)
)
