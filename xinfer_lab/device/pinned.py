"""Pinned host memory of exactly the planned size."""

from __future__ import annotations

import mmap

import torch

from xinfer_lab.device.errors import CudaUnavailable, format_bytes

__all__ = ["PinnedMemory"]


class PinnedMemory:
    """``size`` bytes of page-locked host memory, as the 1-D uint8 tensor ``tensor``; page-aligned.

    An anonymous map is registered with CUDA instead of allocating through torch's pinned allocator, which rounds sizes up to
    powers of two and keeps them; registering is also several times faster. Pinned are whole pages: ``pinned_bytes``.
    """

    def __init__(self, size: int) -> None:
        self.pinned_bytes = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self._map: mmap.mmap | None = mmap.mmap(-1, self.pinned_bytes)
        whole = torch.frombuffer(self._map, dtype=torch.uint8)
        self._pointer = whole.data_ptr()
        self.tensor: torch.Tensor = whole[:size]
        runtime = torch.cuda.cudart()
        status = int(runtime.cudaHostRegister(self._pointer, self.pinned_bytes, 0))  # type: ignore[no-untyped-call]
        if status != 0:
            raise CudaUnavailable(
                f"{format_bytes(self.pinned_bytes)} of host memory could not be pinned (cudaHostRegister: error {status}). "
                f"Free host memory, or raise the limit on locked memory (ulimit -l)."
            )

    def close(self) -> None:
        """Unpin and let go. No copy may still use it."""
        if self._map is not None:
            torch.cuda.cudart().cudaHostUnregister(self._pointer)  # type: ignore[no-untyped-call]
            self.tensor = torch.empty(0, dtype=torch.uint8)
            self._map = None
