"""
wrong: asks a library for the answer
check: model_bytes
phrase: holds the answer
"""

import safetensors


def model_bytes(config, bytes_per_layer):
    return len(safetensors.serialize({}, {}))
