"""A mapped file registered with CUDA: queues copy straight out of the system's file cache; nothing is copied before.

Memory that is pinned already is taken as it is. Otherwise only a shared read-only map is registered, with the flag for
memory that the GPU reads only. Other kinds of map are refused: registering a private one copies the whole file into
memory, or never returns.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

import torch

from xinfer_lab.device.errors import CudaUnavailable, format_bytes
from xinfer_lab.device.pinned import PORTABLE, forget_error

__all__ = ["RegisteredMap", "refusal"]

READ_ONLY = 8
"""cudaHostRegisterReadOnly."""

_READ_ONLY_SUPPORTED = 113
"""CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED."""


class RegisteredMap:
    """The whole mapped file ``file`` (1-D uint8), pinned as it is until `close`; ``tensor`` is ``file`` itself.

    ``pinned_bytes`` are those that this object pinned: none, if the memory was pinned before.

    The file must be in memory as long as it is pinned: missing parts are read now, which blocks the
    host. Raises `CudaUnavailable` where `refusal` says something, and where CUDA refuses.
    """

    def __init__(self, file: torch.Tensor, device: torch.device) -> None:
        if why := refusal(file, device):
            raise CudaUnavailable(f"a source cannot be copied from where it is: {why}")
        self.tensor = file
        self.pinned_bytes = 0
        self._unpin: Callable[[], object] = lambda: None
        if file.is_pinned():
            return
        self.pinned_bytes = -(-file.numel() // mmap.PAGESIZE) * mmap.PAGESIZE
        with torch.cuda.device(device):
            status = int(torch.cuda.cudart().cudaHostRegister(file.data_ptr(), self.pinned_bytes, READ_ONLY | PORTABLE))
        if status != 0:
            forget_error()
            raise CudaUnavailable(
                f"a file of {format_bytes(file.numel())} could not be pinned (cudaHostRegister: error {status}). "
                f"It has to fit into host memory; raise the limit on locked memory (ulimit -l), or choose "
                f"--host-memory pinned or staged."
            )
        self._unpin = weakref.finalize(self, _unpin, file)

    def close(self) -> None:
        """Unpin the file and let go of it. No copy may still use it."""
        self.tensor = torch.empty(0, dtype=torch.uint8, device="cpu")
        self._unpin()


def refusal(file: torch.Tensor, device: torch.device) -> str:
    """Why ``file`` cannot be registered for ``device``, as the end of a sentence; '' if it can be."""
    if file.is_pinned():
        return ""
    if sys.platform != "linux":
        return "mapped files are registered on Linux only"
    if not _read_only_supported(device.index or 0):
        return f"{torch.cuda.get_device_name(device)} or its driver cannot register read-only memory"
    if file.device.type != "cpu" or file.data_ptr() % mmap.PAGESIZE or not _is_shared_read_only(file):
        return "it is no whole file, mapped shared and read-only"
    return ""


def _read_only_supported(index: int) -> bool:
    torch.cuda.init()
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    handle, value = ctypes.c_int(), ctypes.c_int()
    failed = driver.cuDeviceGet(ctypes.byref(handle), index) or driver.cuDeviceGetAttribute(
        ctypes.byref(value), _READ_ONLY_SUPPORTED, handle
    )
    return not failed and value.value == 1


def _is_shared_read_only(memory: torch.Tensor) -> bool:
    """Whether all of ``memory`` lies in one shared, read-only map, as the system itself says."""
    first, last = memory.data_ptr(), memory.data_ptr() + memory.numel()
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        bounds, rights = line.split(" ", 2)[:2]
        start, end = (int(bound, 16) for bound in bounds.split("-"))
        if start <= first and last <= end:
            return rights == "r--s"
    return False


def _unpin(file: torch.Tensor) -> None:
    torch.cuda.cudart().cudaHostUnregister(file.data_ptr())
