"""Copies between host buffers by several threads: one thread's memcpy is far slower than a link or the memory."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

__all__ = ["PIECE", "copy_bytes", "host_threads", "in_pieces"]

PIECE = 2**21
"""Bytes that a thread copies at a time; what is shorter than two of them is copied by the calling thread."""


def host_threads() -> int:
    """Threads that move host memory: one a core, 16 at most, beyond which memory is the limit."""
    return min(16, os.cpu_count() or 1)


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(host_threads(), "xinfer-lab-copy")


def copy_bytes(dst: torch.Tensor, src: torch.Tensor) -> None:
    """Copy ``src`` to ``dst``: 1-D uint8 of one size, ``dst`` on the host. Blocks until it is done."""
    if src.device.type != "cpu" or src.numel() < 2 * PIECE or host_threads() == 1:
        dst.copy_(src)
        return
    target, source = dst.numpy(), src.numpy()
    # NumPy lets go of the interpreter's lock while it copies.
    in_pieces(src.numel(), PIECE, lambda start, end: np.copyto(target[start:end], source[start:end]))


def in_pieces(size: int, piece: int, work: Callable[[int, int], object]) -> None:
    """Call ``work(start, end)`` for each ``piece`` of ``size``, by several threads; blocks until all are done."""
    for _ in _pool().map(lambda start: work(start, min(start + piece, size)), range(0, size, piece)):
        pass
