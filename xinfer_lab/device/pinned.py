"""Pinned host memory of exactly the planned size."""

from __future__ import annotations

import mmap
import weakref
from typing import Any

import torch

from xinfer_lab.device.errors import CudaUnavailable, format_bytes
from xinfer_lab.device.host_copy import PIECE, in_pieces

__all__ = ["PORTABLE", "PinnedMemory", "forget_error", "seen_by_gpu"]

PORTABLE = 1
"""cudaHostRegisterPortable: pinned for every card, not for that alone which was current."""


_LARGE = 2**25
"""From this many bytes on, huge pages and several threads are worth the trouble."""


class PinnedMemory:
    """``size`` bytes of page-locked host memory, as the 1-D uint8 tensor ``tensor``; page-aligned.

    An anonymous map is registered with CUDA instead of allocating through torch's pinned allocator, which rounds sizes
    up to powers of two and keeps them; registering is also several times faster. Pinned are whole pages:
    ``pinned_bytes``.
    """

    def __init__(self, size: int) -> None:
        self.pinned_bytes = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        with torch.inference_mode(False):  # the host writes it outside of inference mode, too
            whole = torch.frombuffer(_anonymous(self.pinned_bytes), dtype=torch.uint8)
        if self.pinned_bytes >= _LARGE:
            # The system makes pages when they are first touched: several threads do that faster than CUDA's one.
            pages = whole.numpy()[:: mmap.PAGESIZE]
            count = 4 * PIECE // mmap.PAGESIZE
            in_pieces(len(pages), count, lambda start, end: pages[start:end].fill(0))
        status = int(torch.cuda.cudart().cudaHostRegister(whole.data_ptr(), self.pinned_bytes, PORTABLE))
        if status != 0:
            forget_error()
            raise CudaUnavailable(
                f"{format_bytes(self.pinned_bytes)} of host memory could not be pinned (cudaHostRegister: error "
                f"{status}). Free host memory, or raise the limit on locked memory (ulimit -l)."
            )
        self.tensor: torch.Tensor = whole[:size]
        # The finalizer holds the map, so that it is unpinned before it is unmapped, even without a call of close: CUDA
        # would otherwise take the next map at the same address for registered.
        self._unpin = weakref.finalize(self, _unpin, whole)

    def unpin(self) -> None:
        """Keep the memory, but no longer pinned. No copy may still use it."""
        self._unpin()
        self.pinned_bytes = 0

    def close(self) -> None:
        """Unpin and let go. No copy may still use it."""
        self.tensor = torch.empty(0, dtype=torch.uint8, device="cpu")
        self._unpin()


class _HostBytes:
    """Pinned host memory by its address, the same on the GPU, in the form that torch takes for device memory."""

    def __init__(self, memory: torch.Tensor) -> None:
        self.__cuda_array_interface__ = {
            "shape": (memory.numel(),), "typestr": "|u1", "data": (memory.data_ptr(), False), "version": 3,
        }  # fmt: skip


def seen_by_gpu(memory: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Pinned host bytes as a tensor that kernels on ``device`` can read. The caller keeps ``memory`` alive until they
    have.

    The memory was pinned while ``device`` was the current card: torch takes that one for its place, and would make a
    copy for any other.
    """
    return torch.as_tensor(_HostBytes(memory), device=device)


def _anonymous(size: int) -> mmap.mmap:
    """``size`` bytes of memory of no file, private to this process; of huge pages where the system has them."""
    names: Any = mmap
    if not hasattr(mmap, "MAP_ANONYMOUS"):
        return mmap.mmap(-1, size)
    # A shared map, the default, is a file in memory, which gets no huge pages.
    made = mmap.mmap(-1, size, flags=names.MAP_PRIVATE | names.MAP_ANONYMOUS)
    if size >= _LARGE and hasattr(mmap, "MADV_HUGEPAGE"):
        made.madvise(names.MADV_HUGEPAGE)
    if hasattr(mmap, "MADV_DONTFORK"):
        # A child process would make the system copy pages that a GPU is reading.
        made.madvise(names.MADV_DONTFORK)
    return made


def forget_error() -> None:
    """Clear the error of a CUDA call that failed: torch would report it at its next launch, whatever that does."""
    try:
        torch.zeros(1, dtype=torch.uint8, device="cuda")
    except RuntimeError:
        return


def _unpin(whole: torch.Tensor) -> None:
    torch.cuda.cudart().cudaHostUnregister(whole.data_ptr())
