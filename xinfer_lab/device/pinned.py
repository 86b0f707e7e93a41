"""Pinned host memory of exactly the planned size."""

from __future__ import annotations

import mmap
import weakref

import torch

from xinfer_lab.device.errors import CudaUnavailable, format_bytes

__all__ = ["PinnedMemory"]


class PinnedMemory:
    """``size`` bytes of page-locked host memory, as the 1-D uint8 tensor ``tensor``; page-aligned.

    An anonymous map is registered with CUDA instead of allocating through torch's pinned allocator, which rounds sizes
    up to powers of two and keeps them; registering is also several times faster. Pinned are whole pages:
    ``pinned_bytes``.
    """

    def __init__(self, size: int) -> None:
        self.pinned_bytes = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        whole = torch.frombuffer(mmap.mmap(-1, self.pinned_bytes), dtype=torch.uint8)
        status = int(torch.cuda.cudart().cudaHostRegister(whole.data_ptr(), self.pinned_bytes, 0))
        if status != 0:
            raise CudaUnavailable(
                f"{format_bytes(self.pinned_bytes)} of host memory could not be pinned (cudaHostRegister: error "
                f"{status}). Free host memory, or raise the limit on locked memory (ulimit -l)."
            )
        self.tensor: torch.Tensor = whole[:size]
        # The finalizer holds the map, so that it is unpinned before it is unmapped, also when nobody calls close: CUDA
        # would otherwise take the next map at the same address for registered.
        self._unpin = weakref.finalize(self, _unpin, whole)

    def close(self) -> None:
        """Unpin and let go. No copy may still use it."""
        self.tensor = torch.empty(0, dtype=torch.uint8)
        self._unpin()


def _unpin(whole: torch.Tensor) -> None:
    torch.cuda.cudart().cudaHostUnregister(whole.data_ptr())
