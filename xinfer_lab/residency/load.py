"""`Uploader`: brings what stays resident into device memory, once, in chunks."""

from __future__ import annotations

from xinfer_lab.device.buffers import Buffer
from xinfer_lab.device.device import Device
from xinfer_lab.device.records import Source
from xinfer_lab.device.stream_rules import BUFFER_ALIGNMENT

__all__ = ["Uploader"]

CHUNK = 2**26
"""Bytes of one staged copy: large enough for the link's full rate and for several threads that fill it, small enough
to overlap reading and copying."""


class Uploader:
    """Uploads named sources of any size into buffers, on the copy queue, through two halves of a staging heap in turn.

    ``largest``: bytes of the largest source to come; no more staging memory than that takes is allocated.
    """

    def __init__(self, device: Device, largest: int) -> None:
        self._device = device
        self._chunk = min(CHUNK, -(-largest // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT)
        self._heap = device.create_upload_heap(2 * self._chunk, device.fresh_name("staging.load"))
        self._loaded = device.create_fence(device.fresh_name("loaded"))
        self._chunks = 0

    def upload(self, buffer: Buffer, offset: int, source: Source) -> None:
        """Copy ``source`` to ``buffer`` from ``offset`` on. Blocks the host until a half of the heap is free."""
        queue = self._device.copy_queue
        for start in range(0, source.size, self._chunk):
            size = min(self._chunk, source.size - start)
            if self._chunks >= 2:
                self._loaded.wait(self._chunks - 1)
            half = self._chunk * (self._chunks % 2)
            span = self._heap.write(half, Source(source.name, source.offset + start, size))
            with queue.record(f"load {source.name}") as commands:
                commands.copy(buffer.span(offset + start, size), span)
            self._chunks += 1
            queue.signal(self._loaded, self._chunks)

    def finish(self, *buffers: Buffer) -> None:
        """Block the host until everything has arrived, and tell the tracker so for ``buffers``; frees the staging
        heap.

        The host has waited for the copies, and whatever it submits afterwards comes after them: the buffers are in
        COMMON.
        """
        self._loaded.wait(self._chunks)
        self._heap.free()
        for buffer in buffers:
            buffer.assume_common()
