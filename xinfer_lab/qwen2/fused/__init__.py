"""The layer maths for a GPU with Triton: few launches, and a position that may lie in device memory.

`xinfer_lab.qwen2.layers` says what is computed; here it is computed with the small operations joined. The two agree
up to rounding. Nothing here is imported before a tensor on such a GPU asks for it (`fused_for`).
"""

from __future__ import annotations

import functools
import importlib.util
from types import ModuleType

import torch

__all__ = ["fused_for", "has_triton"]


@functools.cache
def has_triton() -> bool:
    """Whether Triton can be imported here."""
    return importlib.util.find_spec("triton") is not None


def fused_for(tensor: torch.Tensor) -> ModuleType | None:
    """The module of fused functions (`xinfer_lab.qwen2.fused.layer`) for tensors such as this; None: the plain ones."""
    if not tensor.is_cuda or not has_triton() or not _capable(tensor.device):
        return None
    from xinfer_lab.qwen2.fused import layer

    return layer


@functools.cache
def _capable(device: torch.device) -> bool:
    # Triton compiles for compute capability 8.0 (Ampere, 2020) and later.
    return torch.version.hip is None and torch.cuda.get_device_capability(device) >= (8, 0)
