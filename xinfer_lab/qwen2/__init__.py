"""Qwen2: config, checkpoint, memory layout, layer maths, sampling. Knows no queue and no device."""

from xinfer_lab.qwen2.config import PUBLISHED, Qwen2Config
from xinfer_lab.qwen2.errors import CheckpointError, ConfigError, ModelFileError, TokenizerError
from xinfer_lab.qwen2.layers import LayerSpec, decoder_layer, embed, layer_spec, lm_head
from xinfer_lab.qwen2.layout import (
    GroupLayout,
    LayerLayout,
    TensorPlace,
    layer_layout,
    resident_tensors,
    tensor_name,
)

__all__ = [
    "PUBLISHED",
    "CheckpointError",
    "ConfigError",
    "GroupLayout",
    "LayerLayout",
    "LayerSpec",
    "ModelFileError",
    "Qwen2Config",
    "TensorPlace",
    "TokenizerError",
    "decoder_layer",
    "embed",
    "layer_layout",
    "layer_spec",
    "lm_head",
    "resident_tensors",
    "tensor_name",
]
