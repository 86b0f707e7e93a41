"""`ExtentPool`: the protocol of a page pool, for those who keep things in one.

`HybridMemoryPool` is the usual implementation. Lab 5's pool, made of a student's parts, is another: layers, caches and
experts in pages run on either.
"""

from __future__ import annotations

from typing import Protocol

import torch

from xinfer_lab.device.buffers import Buffer
from xinfer_lab.device.device import Device
from xinfer_lab.device.records import Source, View
from xinfer_lab.paging.extent import Extent, PageState
from xinfer_lab.paging.policy import EvictionPolicy
from xinfer_lab.paging.statistics import PoolStatistics

__all__ = ["ExtentPool", "Frames"]


class Frames(Protocol):
    """What is asked of a pool's table."""

    @property
    def frames(self) -> int:
        """How many frames there are."""
        ...


class ExtentPool(Protocol):
    """Extents in pages of ``page_bytes`` bytes; see `HybridMemoryPool`, whose contract this is."""

    device: Device
    page_bytes: int
    policy: EvictionPolicy
    buffer: Buffer

    @property
    def table(self) -> Frames:
        """How many frames there are."""
        ...

    def create(self, nbytes: int, name: str | None = None) -> Extent:
        """An extent of ``nbytes`` bytes; empty, and not on the device."""
        ...

    def fill(self, extent: Extent, source: str | Source | torch.Tensor | bytes, offset: int = 0) -> None:
        """Write ``source`` into the extent at home, from byte ``offset`` on."""
        ...

    def prefetch(self, *extents: Extent) -> bool:
        """Start copies of what is not on the device; whether all of it is there or on its way."""
        ...

    def acquire(self, *extents: Extent, write: bool = False) -> None:
        """From here on the direct queue may use these extents, until `release`."""
        ...

    def release(self, *extents: Extent) -> None:
        """The direct queue has been given its last command on these extents, for now."""
        ...

    def write_back(self, *extents: Extent) -> None:
        """Dirty extents may be copied home now; they stay."""
        ...

    def view(self, extent: Extent, dtype: str | torch.dtype, shape: tuple[int, ...], offset: int = 0) -> View:
        """The extent's bytes on the device as a tensor, until it is released."""
        ...

    def holds(self, extent: Extent) -> bool:
        """Whether the extent is on the device, or on its way there."""
        ...

    def state(self, extent: Extent) -> PageState:
        """Where the extent is, as far as the host knows without waiting."""
        ...

    def destroy(self, extent: Extent) -> None:
        """Drop the extent's contents."""
        ...

    def statistics(self) -> PoolStatistics:
        """A snapshot."""
        ...

    def close(self) -> None:
        """Block the host until nothing is in flight, and give all memory back."""
        ...
