"""How a decoder layer lies in memory: two groups of tensors, each tensor at a 256-byte aligned offset.

One layout for every residency: a layer can then be moved as two blocks of bytes, and kernels find operands of the same
alignment everywhere, which keeps results equal byte for byte.
"""

import math
from dataclasses import dataclass

import torch

from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.errors import ConfigError
from xinfer_lab.qwen2.experts_config import ExpertsConfig

__all__ = [
    "ALIGNMENT",
    "GroupLayout",
    "LayerLayout",
    "TensorPlace",
    "aligned_elements",
    "expert_layout",
    "expert_tensor_name",
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
    """A decoder layer: its groups "attention" and "mlp". Every layer of a model without experts has the same layout."""

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


def aligned_elements(count: int, itemsize: int) -> int:
    """Elements from the start of a tensor of ``count`` elements to the start of the one after it."""
    return -(-count * itemsize // ALIGNMENT) * ALIGNMENT // itemsize


def tensor_shapes(config: Qwen2Config, layer: int | None = None) -> dict[str, dict[str, tuple[int, ...]]]:
    """Shapes of a layer's tensors: group -> name relative to the layer -> shape.

    Twelve for a dense layer. Those of a layer with experts are what every token needs of it: router and shared expert,
    without the experts themselves (`expert_layout`). Without `layer` every layer is meant: raises ConfigError for a
    model with experts, whose layers are not all there is to it.
    """
    if layer is None and config.experts is not None:
        raise ConfigError(
            f"this model has {config.experts.num_experts} experts in a layer, and what was asked for knows no experts: "
            f"run it with all layers resident"
        )
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
            **(
                _mixture_shapes(hidden, config.experts)
                if layer is not None and config.experts is not None and config.has_experts(layer)
                else {f"mlp.{name}": shape for name, shape in _mlp_shapes(hidden, wide).items()}
            ),
        },
    }


def _mlp_shapes(hidden: int, wide: int) -> dict[str, tuple[int, ...]]:
    return {"gate_proj.weight": (wide, hidden), "up_proj.weight": (wide, hidden), "down_proj.weight": (hidden, wide)}


def _mixture_shapes(hidden: int, experts: ExpertsConfig) -> dict[str, tuple[int, ...]]:
    shared = _mlp_shapes(hidden, experts.shared_expert_intermediate_size)
    return {
        "mlp.gate.weight": (experts.num_experts, hidden),
        **{f"mlp.shared_expert.{name}": shape for name, shape in shared.items()},
        "mlp.shared_expert_gate.weight": (1, hidden),
    }


def layer_layout(config: Qwen2Config, layer: int | None = None) -> LayerLayout:
    """The layout of a decoder layer, in every residency; without `layer` the one that each layer of a model without
    experts has. Raises ConfigError as `tensor_shapes` does."""
    shapes = tensor_shapes(config, layer)
    return LayerLayout(tuple(_group(name, tensors, config.dtype) for name, tensors in shapes.items()))


def expert_layout(config: Qwen2Config) -> GroupLayout:
    """The layout that each expert of this model has, in every residency. Raises ConfigError if it has none."""
    if config.experts is None:
        raise ConfigError("this model has no experts")
    return _group("expert", _mlp_shapes(config.hidden_size, config.experts.moe_intermediate_size), config.dtype)


def expert_tensor_name(layer: int, expert: int, relative: str) -> str:
    """The checkpoint's name of an expert's tensor."""
    return tensor_name(layer, f"mlp.experts.{expert}.{relative}")


def tensor_name(layer: int, relative: str) -> str:
    """The checkpoint's name of a layer's tensor."""
    return f"model.layers.{layer}.{relative}"


def resident_tensors(config: Qwen2Config, *, embedding: bool = True, head: bool = True) -> GroupLayout:
    """Embedding, final norm and head under their checkpoint names; a tied model has no head of its own.

    Without ``embedding``, only what a model needs in device memory whose embedding stays elsewhere; without ``head``,
    the embedding alone.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    if embedding:
        shapes["model.embed_tokens.weight"] = (config.vocab_size, config.hidden_size)
    if head:
        shapes["model.norm.weight"] = (config.hidden_size,)
    if head and not config.tie_word_embeddings:
        shapes["lm_head.weight"] = (config.vocab_size, config.hidden_size)
    return _group("resident", shapes, config.dtype)


def _group(name: str, shapes: dict[str, tuple[int, ...]], dtype: torch.dtype) -> GroupLayout:
    places, offset = [], 0
    for tensor, shape in shapes.items():
        nbytes = math.prod(shape) * dtype.itemsize
        places.append(TensorPlace(tensor, shape, offset, nbytes))
        offset += -(-nbytes // ALIGNMENT) * ALIGNMENT
    return GroupLayout(name, tuple(places), offset)
