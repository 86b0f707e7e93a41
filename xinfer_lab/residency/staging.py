"""A ring allocator over persistently mapped staging memory, and chunked uploads through it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from xinfer_lab.device.buffers import Buffer, UploadHeap
from xinfer_lab.device.device import Device
from xinfer_lab.device.errors import BufferRangeError
from xinfer_lab.device.fence import Fence
from xinfer_lab.device.records import Source
from xinfer_lab.device.rules import BUFFER_ALIGNMENT

__all__ = ["StagingRing", "Uploader"]


@dataclass(slots=True)
class _Block:
    start: int
    end: int
    fence: Fence | None = None
    value: int = 0


class StagingRing:
    """Hands out neighbouring ranges of an upload heap, round and round; waits for a range's fence before handing it out again.

    Every range starts at a multiple of 256 bytes and never wraps: one that does not fit before the end starts at 0.
    """

    def __init__(self, device: Device, size: int, *, name: str = "staging") -> None:
        self.size = -(-size // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT
        self.heap: UploadHeap = device.create_upload_heap(self.size, name)
        self._blocks: deque[_Block] = deque()
        self._head = 0

    def allocate(self, size: int) -> int:
        """The offset of ``size`` free bytes. Blocks the host while copies still read what was there.

        Raises `BufferRangeError` if the ring is smaller than that, RuntimeError if the room is taken by a range whose copy was
        never announced with `retire`.
        """
        size = -(-size // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT
        if not 0 < size <= self.size:
            raise BufferRangeError(f"a staging ring of {self.size} bytes cannot hand out {size}")
        start = self._head if self._head + size <= self.size else 0
        while any(block.start < start + size and start < block.end for block in self._blocks):
            self._reclaim()
        self._blocks.append(_Block(start, start + size))
        self._head = start + size
        return start

    def retire(self, fence: Fence, value: int) -> None:
        """Every range handed out since the last call is free again once ``fence`` has reached ``value``."""
        for block in reversed(self._blocks):
            if block.fence is not None:
                break
            block.fence, block.value = fence, value

    def _reclaim(self) -> None:
        block = self._blocks.popleft()
        if block.fence is None:
            self._blocks.appendleft(block)
            raise RuntimeError("the staging ring is full of ranges whose copies were never submitted: call retire() first")
        block.fence.wait(block.value)

    def drain(self) -> None:
        """Block the host until every range is free."""
        while self._blocks:
            self._reclaim()

    def close(self) -> None:
        """Drain, and give the memory back."""
        self.drain()
        self.heap.free()


class Uploader:
    """Uploads named sources of any size into buffers, on the copy queue, in chunks through a staging ring."""

    def __init__(self, device: Device, chunk: int = 2**24) -> None:
        self._device, self._chunk = device, chunk
        self._ring = StagingRing(device, 2 * chunk, name=device.fresh_name("staging.load"))
        self._fence = device.create_fence(device.fresh_name("loaded"))

    def upload(self, buffer: Buffer, offset: int, source: Source) -> None:
        """Copy ``source`` to ``buffer`` from ``offset`` on. Blocks the host while the ring is full."""
        done = 0
        while done < source.size:
            size = min(self._chunk, source.size - done)
            start = self._ring.allocate(size)
            span = self._ring.heap.write(start, Source(source.name, source.offset + done, size))
            with self._device.copy_queue.record(f"load {source.name}") as commands:
                commands.copy(buffer.span(offset + done, size), span)
            self._device.copy_queue.signal(self._fence, self._fence.last_submitted + 1)
            self._ring.retire(self._fence, self._fence.last_submitted)
            done += size

    def finish(self, *buffers: Buffer) -> None:
        """Block the host until everything has arrived, and say so to the tracker for ``buffers``; gives the ring back.

        The host has waited for the copies, and whatever it submits afterwards comes after them: the buffers are in COMMON.
        """
        self._ring.close()
        for buffer in buffers:
            buffer.assume_common()
