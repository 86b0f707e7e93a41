"""A ring allocator over persistently mapped staging memory."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from xinfer_lab.device.buffers import UploadHeap
from xinfer_lab.device.device import Device
from xinfer_lab.device.errors import BufferRangeError
from xinfer_lab.device.fence import Fence
from xinfer_lab.device.stream_rules import BUFFER_ALIGNMENT

__all__ = ["StagingRing"]


@dataclass(slots=True)
class _Block:
    start: int
    end: int
    fence: Fence | None = None
    value: int = 0


class StagingRing:
    """Hands out neighbouring ranges of an upload heap, round and round; waits for a range's fence before handing it out
    again.

    Every range starts at a multiple of 256 bytes and never wraps: one that does not fit before the end starts at 0.
    """

    def __init__(self, device: Device, size: int, *, name: str = "staging") -> None:
        self.size = -(-size // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT
        self.heap: UploadHeap = device.create_upload_heap(self.size, name)
        self._blocks: deque[_Block] = deque()
        self._head = 0

    def allocate(self, size: int) -> int:
        """The offset of ``size`` free bytes. Blocks the host while copies still read what was there.

        Raises `BufferRangeError` if the ring is smaller than that, RuntimeError if the room is taken by a range whose
        copy was never announced with `retire`.
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
            raise RuntimeError(
                "the staging ring is full of ranges whose copies were never submitted: call retire() first"
            )
        block.fence.wait(block.value)

    def close(self) -> None:
        """Give the memory back; no copy from it may be in flight. May be called again."""
        if self.size:
            self.heap.free()
            self.size = 0
            self._blocks.clear()
