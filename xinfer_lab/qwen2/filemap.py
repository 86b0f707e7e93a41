"""A file's bytes by memory map."""

import mmap
import warnings
from pathlib import Path

import torch

__all__ = ["map_bytes"]


def map_bytes(file: Path) -> torch.Tensor:
    """The bytes of `file`, 1-D uint8, mapped read-only and shared: its pages are the system's file cache.

    Must not be written to: the process would be stopped by the system. The map lives as long as a view of the tensor.
    """
    with file.open("rb") as stream:
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    with warnings.catch_warnings():
        # True and wanted: the map is read-only. Only this message, and only here.
        warnings.filterwarnings("ignore", "The given buffer is not writable", UserWarning)
        return torch.frombuffer(mapped, dtype=torch.uint8)
