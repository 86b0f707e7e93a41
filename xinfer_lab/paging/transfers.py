"""`Transfers`: copies between a pool's pages at home and its frames, and every wait that they need.

Three queues touch a frame: the copy queue fills it, the direct queue reads and writes it, the write-back queue reads
it. Each counts in tickets what it did, and every frame and every home has the last ticket of each. Hence:

* into a frame: after its last reader and writer, after the write-back of whatever lay there, and after the write-back
  of the page that comes (its bytes have to be home first);
* home from a frame: after the last writer, and after any copy from that home, even of an extent that is gone;
* the direct queue reads after the copy, and writes after a write-back that still reads.

A ticket is noted before its copy is submitted. An error in between then leaves a wait too many, never one too few.

Submitting a copy costs the host more than a small page takes on the link. So neighbours in both memories go in one
copy, and copies that are submitted together share one signal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xinfer_lab.device.buffers import Buffer, HostHeap
from xinfer_lab.device.device import Device
from xinfer_lab.device.records import MAX_NAME, Span
from xinfer_lab.paging.extent import Extent
from xinfer_lab.paging.table import PageEntry
from xinfer_lab.paging.tickets import Tickets

__all__ = ["AND", "Transfers"]

AND = " + "
"""Separates the names of extents in the label of a copy that moves several."""


class Transfers:
    """Submits the copies of a pool whose frames lie in ``buffer`` and whose homes lie in ``heap``, side by side.

    Each copy is a call of its own: the buffer of all frames is promoted by it and decays after it, so no barrier is
    ever recorded. (In D3D12 the frames would be placed buffers of one heap: of one buffer only one queue may write at a
    time.) Nothing here blocks the host, `host_waits` aside.
    """

    def __init__(self, device: Device, buffer: Buffer, heap: HostHeap, page_bytes: int, name: str) -> None:
        self.buffer, self.heap, self.page_bytes = buffer, heap, page_bytes
        self.arrived = Tickets(device, device.copy_queue, f"{name}.arrived")
        self.saved = Tickets(device, device.write_back_queue, f"{name}.saved")
        self.done = Tickets(device, device.direct_queue, f"{name}.done")
        frames, homes = buffer.size // page_bytes, heap.size // page_bytes
        self._filled, self._emptied, self._touched = [0] * frames, [0] * frames, [0] * frames
        self._sent, self._kept = [0] * homes, [0] * homes

    def runs(self, entries: Iterable[PageEntry]) -> Iterator[list[PageEntry]]:
        """``entries``, all in frames, in their order, as runs that one copy can move: each entry of a run is followed,
        at home and in frames, by the next one, and nothing of its last page is unused.
        """
        run: list[PageEntry] = []
        for entry in entries:
            if run and not self._follows(run[-1], entry):
                yield run
                run = []
            run.append(entry)
        if run:
            yield run

    def _follows(self, before: PageEntry, after: PageEntry) -> bool:
        extent = before.extent
        return (
            after.extent.first == extent.first + extent.pages
            and after.frames.start == before.frames.stop
            and extent.nbytes == extent.pages * self.page_bytes
        )

    def bring(self, run: Sequence[PageEntry]) -> None:
        """Copy ``run`` (see `runs`) from home into its frames, in one copy.

        `sent` signals after it, and after all others that were submitted since the last time.
        """
        frames, homes, queue = _frames(run), _homes(run), self.arrived.queue
        self.done.hold(queue, _last(self._touched, frames))
        self.saved.hold(queue, max(_last(self._emptied, frames), _last(self._kept, homes)))
        ticket = self.arrived.promise()
        _note(self._filled, frames, ticket)
        _note(self._sent, homes, ticket)
        there, here = self._spans(run)
        queue.copy(there, here, label=_label("bring", run))

    def sent(self) -> None:
        """The copies to the device that were submitted last are waited for together: one signal after all of them."""
        self.arrived.signal()

    def save(self, run: Sequence[PageEntry]) -> None:
        """Copy ``run`` (see `runs`) from its frames home, in one copy; `gone` signals after it, as `sent` does."""
        frames, homes, queue = _frames(run), _homes(run), self.saved.queue
        self.done.hold(queue, _last(self._touched, frames))
        self.arrived.hold(queue, _last(self._sent, homes))
        ticket = self.saved.promise()
        _note(self._emptied, frames, ticket)
        _note(self._kept, homes, ticket)
        there, here = self._spans(run)
        queue.copy(here, there, label=_label("save", run))

    def gone(self) -> None:
        """The copies home that were submitted last are waited for together."""
        self.saved.signal()

    def _spans(self, run: Sequence[PageEntry]) -> tuple[Span, Span]:
        """The bytes of ``run`` on the device, and at home."""
        first, size = run[0], sum(entry.extent.nbytes for entry in run)
        there = self.buffer.span(first.frames.start * self.page_bytes, size)
        return there, self.heap.span(first.extent.first * self.page_bytes, size)

    def before_reading(self, entries: Iterable[PageEntry]) -> None:
        """The direct queue goes no further before the copies into these frames are over."""
        self.arrived.hold(self.done.queue, max(_last(self._filled, entry.frames) for entry in entries))

    def before_writing(self, entries: Iterable[PageEntry]) -> None:
        """The direct queue goes no further before nothing copies into these frames, or out of them."""
        places = [entry.frames for entry in entries]
        self.arrived.hold(self.done.queue, max(_last(self._filled, frames) for frames in places))
        self.saved.hold(self.done.queue, max(_last(self._emptied, frames) for frames in places))

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
            tickets.block(tickets.last)


def _frames(run: Sequence[PageEntry]) -> range:
    return range(run[0].frames.start, run[-1].frames.stop)


def _homes(run: Sequence[PageEntry]) -> range:
    return range(run[0].extent.first, run[-1].extent.numbers.stop)


def _label(verb: str, run: Sequence[PageEntry]) -> str:
    """The names of what is copied, or of the first and the last where they would be too many to read."""
    names = [entry.extent.name for entry in run]
    joined = AND.join(names)
    return f"{verb} {joined}" if len(joined) <= MAX_NAME else f"{verb} {names[0]} to {names[-1]}"


def _last(tickets: list[int], places: range) -> int:
    return max(tickets[places.start : places.stop])


def _note(tickets: list[int], places: range, ticket: int) -> None:
    tickets[places.start : places.stop] = [ticket] * len(places)
