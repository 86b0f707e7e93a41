"""A node: one card of a device that has several, with its own queues, memory and link.

Direct3D 12 calls it explicit multi-adapter. There is one command stream and one set of fences; a queue belongs to a
node by its name (``"copy@1"``; node 0's queues have no number), a buffer of device memory by its allocation. What
works on one card works on a node: a `Node` has all that programs ask of a `Device`, and creates on its own card.
"""

from __future__ import annotations

from typing import Any, Protocol

from xinfer_lab.device.buffers import Buffer, HostHeap, MappedHeap, ReadbackHeap, UploadHeap
from xinfer_lab.device.memory import MemoryBudget
from xinfer_lab.device.node_names import on_node
from xinfer_lab.device.queue import CommandQueue


class _Several(Protocol):
    """What a node needs of its device."""

    memories: list[MemoryBudget]
    queues: dict[str, CommandQueue]

    def create_queue(self, name: str, kind: str = "copy") -> CommandQueue: ...
    def create_buffer(self, size: int, name: str | None = None, *, node: int = 0) -> Buffer: ...
    def create_upload_heap(self, size: int, name: str | None = None) -> UploadHeap: ...
    def create_readback_heap(self, size: int, name: str | None = None) -> ReadbackHeap: ...
    def create_host_heap(self, size: int, name: str | None = None) -> HostHeap: ...
    def map_upload_heap(self, source: str, name: str | None = None) -> MappedHeap: ...


__all__ = ["RELAY", "WRITE_BACK", "Node"]

WRITE_BACK = "write back"
"""The name of the queue of copies to the host."""

RELAY = "relay"
"""The name of the queue of copies from other cards."""


class Node:
    """Card number ``index`` of ``device``. What is created here lies here; everything else is the device's own.

    Names of buffers and heaps get the node's number, since all nodes share one stream.
    """

    def __init__(self, device: _Several, index: int) -> None:
        self.device, self.index = device, index

    @property
    def direct_queue(self) -> CommandQueue:
        """The queue that computes on this card."""
        return self.device.queues[on_node("direct", self.index)]

    @property
    def copy_queue(self) -> CommandQueue:
        """The queue of copies over this card's link."""
        return self.device.queues[on_node("copy", self.index)]

    @property
    def write_back_queue(self) -> CommandQueue:
        """A copy queue for copies to the host, made when first asked for: a link carries both directions at once."""
        return self._queue(WRITE_BACK)

    @property
    def relay_queue(self) -> CommandQueue:
        """A copy queue for what comes from other cards beside this card's own link, made when first asked for."""
        return self._queue(RELAY)

    def _queue(self, name: str) -> CommandQueue:
        name = on_node(name, self.index)
        return self.device.queues.get(name) or self.device.create_queue(name)

    @property
    def memory(self) -> MemoryBudget:
        """This card's memory."""
        return self.device.memories[self.index]

    def create_buffer(self, size: int, name: str | None = None) -> Buffer:
        """``size`` bytes of this card's memory. Raises `OutOfDeviceMemory` when its budget does not allow it."""
        return self.device.create_buffer(size, self._named(name), node=self.index)

    def create_upload_heap(self, size: int, name: str | None = None) -> UploadHeap:
        """As `Device.create_upload_heap`; host memory belongs to no card."""
        return self.device.create_upload_heap(size, self._named(name))

    def create_readback_heap(self, size: int, name: str | None = None) -> ReadbackHeap:
        """As `Device.create_readback_heap`."""
        return self.device.create_readback_heap(size, self._named(name))

    def create_host_heap(self, size: int, name: str | None = None) -> HostHeap:
        """As `Device.create_host_heap`."""
        return self.device.create_host_heap(size, self._named(name))

    def map_upload_heap(self, source: str, name: str | None = None) -> MappedHeap:
        """As `Device.map_upload_heap`."""
        return self.device.map_upload_heap(source, self._named(name))

    def _named(self, name: str | None) -> str | None:
        return None if name is None else on_node(name, self.index)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.device, name)
