"""What a layer of a model costs in a first pass."""

from __future__ import annotations

from xinfer_lab.device.kernels import Cost
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.costs import decoder_layer_work
from xinfer_lab.qwen2.layers import layer_spec
from xinfer_lab.residency.operands import cost_of

__all__ = ["layer_cost"]


def layer_cost(config: Qwen2Config, tokens: int) -> Cost:
    """FLOPs and bytes of layer 0 for ``tokens`` tokens from position 0 on."""
    work = decoder_layer_work(
        layer_spec(config, 0),
        batch=1,
        tokens=tokens,
        position=0,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        dtype=config.dtype,
    )
    return cost_of(work)
