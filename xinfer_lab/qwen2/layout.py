"""How a decoder layer lies in memory: two groups of tensors, each tensor at a 256-byte aligned offset."""

import math
from dataclasses import dataclass

import torch

from xinfer_lab.qwen2.config import Qwen2Config

__all__ = [
    "ALIGNMENT",
    "GroupLayout",
    "LayerLayout",
    "TensorPlace",
    "layer_layout",
    "resident_tensors",
    "tensor_name",
    "tensor_shapes",
]

ALIGNMENT = 256
"""Bytes. Kernels pick faster paths for better aligned operands, and another path may round differently; one alignment
in every residency keeps the results equal byte for byte."""


@dataclass(frozen=True)
class TensorPlace:
    """One tensor: `name`, `shape`, and the `nbytes` bytes at `offset` from the start of its group, no padding."""

    name: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


@dataclass(frozen=True)
class GroupLayout:
    """Tensors that are moved together, in the order of their offsets. `nbytes` includes padding between and after."""

    name: str
    tensors: tuple[TensorPlace, ...]
    nbytes: int

    @property
    def weight_nbytes(self) -> int:
        """Bytes of the tensors alone, without padding."""
        return sum(place.nbytes for place in self.tensors)


@dataclass(frozen=True)
class LayerLayout:
    """A decoder layer: its groups "attention" and "mlp"; every layer of a model has the same layout."""

    groups: tuple[GroupLayout, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all groups, padding included; a multiple of 256."""
        return sum(group.nbytes for group in self.groups)

    @property
    def weight_nbytes(self) -> int:
        """Bytes of the tensors alone, without padding."""
        return sum(group.weight_nbytes for group in self.groups)

    def group(self, name: str) -> GroupLayout:
        """The group of that name; KeyError for any other name."""
        for group in self.groups:
            if group.name == name:
                return group
        raise KeyError(f"a layer has the groups {[group.name for group in self.groups]}, but {name!r} was asked for")


def tensor_shapes(config: Qwen2Config) -> dict[str, dict[str, tuple[int, ...]]]:
    """Shapes of a layer's twelve tensors: group -> name relative to the layer -> shape."""
    hidden, wide = config.hidden_size, config.intermediate_size
    queries = config.num_attention_heads * config.head_dim
    keys = config.num_key_value_heads * config.head_dim
    return {
        "attention": {
            "input_layernorm.weight": (hidden,),
            "self_attn.q_proj.weight": (queries, hidden),
            "self_attn.q_proj.bias": (queries,),
            "self_attn.k_proj.weight": (keys, hidden),
            "self_attn.k_proj.bias": (keys,),
            "self_attn.v_proj.weight": (keys, hidden),
            "self_attn.v_proj.bias": (keys,),
            "self_attn.o_proj.weight": (hidden, queries),
        },
        "mlp": {
            "post_attention_layernorm.weight": (hidden,),
            "mlp.gate_proj.weight": (wide, hidden),
            "mlp.up_proj.weight": (wide, hidden),
            "mlp.down_proj.weight": (hidden, wide),
        },
    }


def layer_layout(config: Qwen2Config) -> LayerLayout:
    """The layout that each decoder layer of this model has, in every residency."""
    return LayerLayout(tuple(_group(name, shapes, config.dtype) for name, shapes in tensor_shapes(config).items()))


def tensor_name(layer: int, relative: str) -> str:
    """The checkpoint's name of a layer's tensor."""
    return f"model.layers.{layer}.{relative}"


def resident_tensors(config: Qwen2Config, *, embedding: bool = True) -> GroupLayout:
    """Embedding, final norm and head under their checkpoint names; a tied model has no head of its own.

    Without ``embedding``, only what a model needs in device memory whose embedding stays on the host.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    if embedding:
        shapes["model.embed_tokens.weight"] = (config.vocab_size, config.hidden_size)
    shapes["model.norm.weight"] = (config.hidden_size,)
    if not config.tie_word_embeddings:
        shapes["lm_head.weight"] = (config.vocab_size, config.hidden_size)
    return _group("resident", shapes, config.dtype)


def _group(name: str, shapes: dict[str, tuple[int, ...]], dtype: torch.dtype) -> GroupLayout:
    places, offset = [], 0
    for tensor, shape in shapes.items():
        nbytes = math.prod(shape) * dtype.itemsize
        places.append(TensorPlace(tensor, shape, offset, nbytes))
        offset += -(-nbytes // ALIGNMENT) * ALIGNMENT
    return GroupLayout(name, tuple(places), offset)
