"""Tensors over a buffer's bytes: what kernels get, and what digests are taken of, wherever there is real memory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch

from xinfer_lab.device.records import Span, View
from xinfer_lab.device.stream_rules import BUFFER_ALIGNMENT

__all__ = ["POISON", "aligned_bytes", "digest_of", "slice_span", "slice_view"]

POISON = 0xFF
"""Fresh memory is filled with this byte in check mode: every float type reads it as NaN."""


def aligned_bytes(size: int) -> torch.Tensor:
    """``size`` bytes of host memory (1-D uint8) that start at a multiple of 256, uninitialised."""
    # No inference tensor, even where a program loads a model in inference mode: the host writes it outside of it, too.
    with torch.inference_mode(False):
        raw = torch.empty(size + BUFFER_ALIGNMENT, dtype=torch.uint8, device="cpu")
    start = -raw.data_ptr() % BUFFER_ALIGNMENT
    return raw[start : start + size]


def slice_span(memory: Mapping[str, torch.Tensor], span: Span) -> torch.Tensor:
    """The bytes of ``span``, a view of the buffer's tensor."""
    return memory[span.buffer][span.offset : span.end]


def slice_view(memory: Mapping[str, torch.Tensor], view: View) -> torch.Tensor:
    """``view`` as a tensor over the buffer's bytes."""
    return slice_span(memory, view.span).view(getattr(torch, view.dtype)).view(view.shape)


def digest_of(raw: torch.Tensor) -> str:
    """BLAKE2b-128 of the bytes of a 1-D uint8 host tensor, in hexadecimal."""
    return hashlib.blake2b(raw.contiguous().numpy().data, digest_size=16).hexdigest()
