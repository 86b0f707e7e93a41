"""
wrong: imports the package's own figure only when called
check: layer_bytes
phrase: holds the answer
"""


def layer_bytes(config):
    from xinfer_lab.qwen2.layout import layer_layout
    from xinfer_lab.qwen2.config import Qwen2Config

    return layer_layout(Qwen2Config.from_dict(config)).weight_nbytes
