"""The labs' GPU: one on which computing a layer of a small model takes a chosen share of its transfer."""

from __future__ import annotations

from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.qwen2 import costs
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layers import layer_spec
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.operands import cost_of

__all__ = ["lab_gpu"]


def lab_gpu(config: Qwen2Config, ratio: float, *, position: int = 0, tokens: int = 1, batch: int = 1) -> GpuSpec:
    """A GPU on which T_comp / T_trans of a layer is ``ratio``, and a layer's transfer takes one millisecond.

    Computed are ``tokens`` new tokens of each of ``batch`` sequences, at ``position``. See `GpuSpec.lab`.
    """
    work = costs.decoder_layer_work(
        layer_spec(config, 0), batch=batch, tokens=tokens, position=position, hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size, dtype=config.dtype,
    )  # fmt: skip
    return GpuSpec.lab(ratio, layer_bytes=layer_layout(config).nbytes, layer_cost=cost_of(work))
