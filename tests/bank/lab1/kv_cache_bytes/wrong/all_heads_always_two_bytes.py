"""
wrong: a cache for each query head, and two bytes whatever the dtype says: two factors at once
check: kv_cache_bytes, gate
phrase: All heads are cached; and
"""


def kv_cache_bytes(config, context, batch):
    head_dim = config["hidden_size"] // config["num_attention_heads"]
    return 2 * config["num_hidden_layers"] * config["num_attention_heads"] * head_dim * 2 * context * batch
