"""Tells the history of one buffer's state, command by command: the device's, and the tracker's account."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xinfer_lab.device.device_states import DeviceStates
from xinfer_lab.device.kernels import KernelTable
from xinfer_lab.device.records import Allocate, AssumeCommon, Copy, Dispatch, Record, Transition, Wait, queue_of
from xinfer_lab.device.states import COMMON, StateTracker, required_states

__all__ = ["StateEntry", "state_log"]


@dataclass(frozen=True, slots=True)
class StateEntry:
    """After ``what`` (record number ``record``, on ``lane``) the device has the buffer in ``device``, the tracker in
    ``tracker``.

    ``verdict`` is what the device refuses about it, '' if nothing. ``what`` may also be the end of a call.
    """

    record: int
    lane: str
    what: str
    device: str
    tracker: str
    verdict: str = ""

    @property
    def agree(self) -> bool:
        """Whether both say the same."""
        return self.device == self.tracker


def state_log(stream: Iterable[Record], buffer: str, kernels: KernelTable) -> tuple[StateEntry, ...]:
    """The history of ``buffer`` in ``stream``: everything that touches it, the end of each call that does, and waits
    of the direct queue.

    The device column says COMMON after a call as soon as the call is over; *when* that is, the host cannot know
    without a fence.
    """
    log = _Log(buffer, kernels)
    for index, record in enumerate(stream):
        log.observe(index, record)
    log.end_call()
    return tuple(log.entries)


class _Log:
    def __init__(self, buffer: str, kernels: KernelTable) -> None:
        self._buffer, self._kernels = buffer, kernels
        self._device, self._tracker = DeviceStates(kernels), StateTracker()
        self._call: tuple[str, int] | None = None
        self._touched = False
        self._last = 0
        self._alive = False
        self.entries: list[StateEntry] = []

    def _add(self, index: int, lane: str, what: str, device: str, verdict: str = "") -> None:
        self.entries.append(StateEntry(index, lane, what, device, self._tracker.state(self._buffer), verdict))

    def end_call(self) -> None:
        """The open call, if there is one, is over."""
        if self._call is None:
            return
        queue, _ = self._call
        self._tracker.end_call(queue)
        self._call = None
        if self._touched:
            self._add(self._last, queue, "end of the call", COMMON)
        self._touched = False

    def observe(self, index: int, record: Record) -> None:
        """Take in the next record."""
        verdicts = [fault.message for fault in self._device.observe(record) if fault.buffer == self._buffer]
        if isinstance(record, (Copy, Dispatch, Transition)):
            self._command(index, record, "; ".join(verdicts))
            return
        if isinstance(record, AssumeCommon):
            if record.buffer == self._buffer:
                self._tracker.assume_common(record.buffer)
                in_call = self._device.state(record.buffer, self._call[0]) if self._call else COMMON
                self._add(index, "host", "assume_common", in_call)
            return
        self.end_call()
        if isinstance(record, Allocate):
            self._tracker.allocate(record.buffer, record.heap, record.node)
            if record.buffer == self._buffer:
                self._alive = True
                self._add(index, "host", "created", self._device.state(record.buffer))
        elif isinstance(record, Wait) and self._alive and record.queue == self._tracker.home(self._buffer):
            self._add(index, record.queue, f"wait >= {record.value}", COMMON)

    def _command(self, index: int, record: Copy | Dispatch | Transition, verdict: str) -> None:
        if self._call != (record.queue, record.call):
            self.end_call()
            self._call = (record.queue, record.call)
            self._tracker.begin_call(record.queue)
        self._last = index
        if isinstance(record, Transition):
            uses = {record.buffer: record.after}
        else:
            uses = required_states(record, self._kernels)
        if record.listed:
            for name, state in uses.items():
                if isinstance(record, Transition):
                    self._tracker.barrier(name, state)
                else:
                    self._tracker.use(name, state)
        if self._buffer in uses:
            self._touched = True
            if isinstance(record, Copy):
                what = "copy into it" if record.dst.buffer == self._buffer else "copy out of it"
            elif isinstance(record, Transition):
                what = f"barrier {record.before} -> {record.after}"
            else:
                what = record.label or record.kernel
            self._add(index, queue_of(record), what, self._device.state(self._buffer, record.queue), verdict)
