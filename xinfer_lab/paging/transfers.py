"""`Transfers`: copies between a pool's pages at home and its frames, and every wait that they need.

Three queues touch a frame: the copy queue fills it, the direct queue reads and writes it, the write-back queue reads
it. Each counts what it did in tickets, and for every frame and every home there is the last ticket of each. Hence:

* into a frame: after its last reader and writer, after the write-back of whatever lay there, and after the write-back
  of the very page that comes (its bytes have to be home first);
* home from a frame: after the last writer, and after any copy from that home, be it of an extent that is gone;
* the direct queue reads after the copy, and writes after a write-back that still reads.

A ticket is noted before what it stands for is submitted, so that a fault in between leaves a wait too many and never
one too few.
"""

from __future__ import annotations

from collections.abc import Iterable

from xinfer_lab.device.buffers import Buffer, HostHeap
from xinfer_lab.device.device import Device
from xinfer_lab.device.records import Span
from xinfer_lab.paging.extent import Extent
from xinfer_lab.paging.table import PageEntry
from xinfer_lab.paging.tickets import Tickets

__all__ = ["Transfers"]


class Transfers:
    """Submits the copies of a pool whose frames lie in ``buffer`` and whose homes lie in ``heap``, side by side.

    Each copy is a call of its own: the buffer of all frames is promoted by it and decays after it, so no barrier is
    ever recorded. (In D3D12 the frames would be placed buffers of one heap: of one buffer only one queue may write at a
    time.) Nothing here blocks the host, `host_waits` aside.
    """

    def __init__(self, device: Device, buffer: Buffer, heap: HostHeap, page_bytes: int, name: str) -> None:
        self.buffer, self.heap, self.page_bytes = buffer, heap, page_bytes
        self.arrived = Tickets(device.copy_queue, f"{name}.arrived")
        self.saved = Tickets(device.write_back_queue, f"{name}.saved")
        self.done = Tickets(device.direct_queue, f"{name}.done")
        frames, homes = buffer.size // page_bytes, heap.size // page_bytes
        self._filled, self._emptied, self._touched = [0] * frames, [0] * frames, [0] * frames
        self._sent, self._kept = [0] * homes, [0] * homes

    def span(self, entry: PageEntry) -> Span:
        """The bytes of ``entry`` on the device."""
        assert entry.frame is not None
        return self.buffer.span(entry.frame * self.page_bytes, entry.extent.nbytes)

    def home(self, extent: Extent) -> Span:
        """The bytes of ``extent`` in the host pool."""
        return self.heap.span(extent.first * self.page_bytes, extent.nbytes)

    def bring(self, extent: Extent, frame: int) -> None:
        """Copy ``extent`` from its home into the frames from ``frame`` on, which nobody may be given meanwhile.

        `sent` signals after it, and after all others that were submitted since the last time.
        """
        frames, queue = range(frame, frame + extent.pages), self.arrived.queue
        self.done.hold(queue, _last(self._touched, frames))
        self.saved.hold(queue, max(_last(self._emptied, frames), _last(self._kept, extent.numbers)))
        _note(self._filled, frames, self.arrived.next)
        _note(self._sent, extent.numbers, self.arrived.next)
        there = self.buffer.span(frame * self.page_bytes, extent.nbytes)
        queue.copy(there, self.home(extent), label=f"bring {extent.name}")

    def sent(self) -> None:
        """The copies to the device that were submitted last are waited for together: one signal after all of them."""
        self.arrived.signal()

    def save(self, entry: PageEntry) -> None:
        """Copy ``entry`` from its frames home."""
        extent, queue = entry.extent, self.saved.queue
        self.done.hold(queue, _last(self._touched, entry.frames))
        self.arrived.hold(queue, _last(self._sent, extent.numbers))
        _note(self._emptied, entry.frames, self.saved.next)
        _note(self._kept, extent.numbers, self.saved.next)
        queue.copy(self.home(extent), self.span(entry), label=f"save {extent.name}")
        self.saved.signal()

    def before_reading(self, entries: Iterable[PageEntry]) -> None:
        """The direct queue goes no further before the copies into these frames are over."""
        self.arrived.hold(self.done.queue, max(_last(self._filled, entry.frames) for entry in entries))

    def before_writing(self, entries: Iterable[PageEntry]) -> None:
        """The direct queue goes no further before nothing copies into these frames, or out of them."""
        frames = [frame for entry in entries for frame in entry.frames]
        self.arrived.hold(self.done.queue, _last(self._filled, frames))
        self.saved.hold(self.done.queue, _last(self._emptied, frames))

    def touched(self, entries: Iterable[PageEntry]) -> None:
        """The direct queue has been given its last command on these frames, for now."""
        ticket = self.done.signal()
        for entry in entries:
            _note(self._touched, entry.frames, ticket)

    def host_waits(self, extent: Extent) -> None:
        """Block the host until nothing copies from or into the home of ``extent``."""
        self.arrived.block(_last(self._sent, extent.numbers))
        self.saved.block(_last(self._kept, extent.numbers))

    def drain(self) -> None:
        """Block the host until nothing of the pool is in flight."""
        for tickets in (self.arrived, self.saved, self.done):
            tickets.block(tickets.fence.last_submitted)


def _last(tickets: list[int], places: Iterable[int]) -> int:
    return max(tickets[place] for place in places)


def _note(tickets: list[int], places: Iterable[int], ticket: int) -> None:
    for place in places:
        tickets[place] = ticket
