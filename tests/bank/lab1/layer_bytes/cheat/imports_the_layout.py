"""
wrong: takes the package's own figure
check: layer_bytes
phrase: holds the answer
"""

from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.qwen2.config import Qwen2Config


def layer_bytes(config):
    return layer_layout(Qwen2Config.from_dict(config)).weight_nbytes
