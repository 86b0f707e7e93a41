"""`LayerSpec`: what a decoder layer needs to know beside its weights."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from xinfer_lab.qwen2.config import Qwen2Config

__all__ = ["LayerSpec", "layer_spec"]


@dataclass(frozen=True, kw_only=True)
class LayerSpec:
    """What a decoder layer needs to know beside its weights. `window` counts the keys a query sees, itself included."""

    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float
    rope_theta: float
    window: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "LayerSpec":
        """The inverse of `to_dict`."""
        return cls(**data)


def layer_spec(config: Qwen2Config, layer: int) -> LayerSpec:
    """The spec of one layer of a model; layers differ at most in their window."""
    return LayerSpec(
        num_attention_heads=config.num_attention_heads,
        num_key_value_heads=config.num_key_value_heads,
        head_dim=config.head_dim,
        rms_norm_eps=config.rms_norm_eps,
        rope_theta=config.rope_theta,
        window=config.window(layer),
    )
