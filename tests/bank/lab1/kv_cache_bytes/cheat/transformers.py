"""
wrong: builds the cache with a library
check: kv_cache_bytes
phrase: holds the answer
"""


def kv_cache_bytes(config, context, batch):
    from transformers import DynamicCache

    return DynamicCache.__sizeof__(DynamicCache())
