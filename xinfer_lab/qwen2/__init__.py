"""Qwen2: config, checkpoint, memory layout, layer maths, sampling. Knows no queue and no device."""

from xinfer_lab.qwen2.checkpoint import Checkpoint, TensorEntry
from xinfer_lab.qwen2.config import PUBLISHED, Qwen2Config
from xinfer_lab.qwen2.errors import CheckpointError, ConfigError, ModelFileError, TokenizerError
from xinfer_lab.qwen2.experts_config import ExpertsConfig
from xinfer_lab.qwen2.layers import LayerSpec, decoder_layer, embed, layer_spec, lm_head
from xinfer_lab.qwen2.layout import (
    GroupLayout,
    LayerLayout,
    TensorPlace,
    expert_layout,
    expert_tensor_name,
    layer_layout,
    resident_tensors,
    tensor_name,
)
from xinfer_lab.qwen2.reference import ReferenceModel
from xinfer_lab.qwen2.sampling import greedy, sample
from xinfer_lab.qwen2.synthetic import SyntheticSpec, write_checkpoint
from xinfer_lab.qwen2.tokenizer import Tokenizer

__all__ = [
    "PUBLISHED",
    "Checkpoint",
    "CheckpointError",
    "ConfigError",
    "ExpertsConfig",
    "GroupLayout",
    "LayerLayout",
    "LayerSpec",
    "ModelFileError",
    "Qwen2Config",
    "ReferenceModel",
    "SyntheticSpec",
    "TensorEntry",
    "TensorPlace",
    "Tokenizer",
    "TokenizerError",
    "decoder_layer",
    "embed",
    "expert_layout",
    "expert_tensor_name",
    "greedy",
    "layer_layout",
    "layer_spec",
    "lm_head",
    "resident_tensors",
    "sample",
    "tensor_name",
    "write_checkpoint",
]
