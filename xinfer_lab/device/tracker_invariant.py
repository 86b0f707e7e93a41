"""Checks what Lab 4 teaches: at each ExecuteCommandLists the program's tracker says what the device says."""

from __future__ import annotations

import contextlib

from xinfer_lab.device.errors import StateError
from xinfer_lab.device.journal import Journal
from xinfer_lab.device.kernels import KernelTable
from xinfer_lab.device.record_words import lane_name
from xinfer_lab.device.records import Allocate, AssumeCommon, Copy, Dispatch, Record, Transition
from xinfer_lab.device.state_faults import StateFault
from xinfer_lab.device.states import COMMON, DIRECT, FIXED_STATES, StateTracker, required_states
from xinfer_lab.device.vector_clocks import Clocks, includes

__all__ = ["TrackerInvariant"]


class TrackerInvariant:
    """Works out from a stream alone what a `StateTracker` held, and where it was wrong.

    The tracker sees the commands that were recorded in lists (``record.listed``) and each AssumeCommon. The device
    has every default-heap buffer in COMMON as a call starts. Two faults: ``tracker-stale``, the direct queue is given
    a call that uses a buffer which the tracker holds in another state; and ``assumed-too-early``, an AssumeCommon
    while the direct queue does not yet wait for the last call of another queue that used the buffer.
    """

    def __init__(self, kernels: KernelTable, direct: str = DIRECT) -> None:
        self._kernels = kernels
        self._journal = Journal()
        self._clocks = Clocks()
        self._tracker = StateTracker(direct)
        self._call: tuple[str, int] | None = None
        self._checked: set[str] = set()
        self._fixed: set[str] = set()
        self._left_by: dict[str, int] = {}
        self._elsewhere: dict[str, dict[int, tuple[int, int]]] = {}

    def observe(self, record: Record) -> tuple[StateFault, ...]:
        """Take in the next record of the stream and return the faults that show in it.

        Raises `FenceError` for a fence with two signalling queues or values that do not grow. A barrier that names no
        known state is passed over: the device rejects it.
        """
        index = self._journal.append(record)
        tick = self._clocks.advance(record)
        match record:
            case Copy() | Dispatch() | Transition():
                return self._command(record, index, tick.lane, tick.number)
            case AssumeCommon():
                faults = self._too_early(record, index)
                self._tracker.assume_common(record.buffer)
                return faults
        self._end_call()
        if isinstance(record, Allocate):
            self._tracker.allocate(record.buffer, record.heap, record.node)
            self._elsewhere.pop(record.buffer, None)
            self._fixed.discard(record.buffer)
            if record.heap in FIXED_STATES:
                self._fixed.add(record.buffer)
        return ()

    def _end_call(self) -> None:
        if self._call is not None:
            self._tracker.end_call(self._call[0])
            self._call = None

    def _command(
        self, record: Copy | Dispatch | Transition, index: int, lane: int, number: int
    ) -> tuple[StateFault, ...]:
        if self._call != (record.queue, record.call):
            self._end_call()
            self._call = (record.queue, record.call)
            self._tracker.begin_call(record.queue)
            self._checked.clear()
        if isinstance(record, Transition):
            uses = {record.buffer: record.after}
        else:
            uses = required_states(record, self._kernels)
        faults = []
        for buffer in sorted(uses.keys() - self._fixed):
            if record.queue != self._tracker.home(buffer):
                self._elsewhere.setdefault(buffer, {})[lane] = (number, index)
            elif buffer not in self._checked:
                self._checked.add(buffer)
                if self._tracker.state(buffer) != COMMON:
                    faults.append(self._stale(buffer, index))
        if record.listed:
            for buffer, state in uses.items():
                if not isinstance(record, Transition):
                    self._tracker.use(buffer, state)
                else:
                    with contextlib.suppress(StateError):
                        self._tracker.barrier(buffer, state)
                self._left_by[buffer] = index
        return tuple(faults)

    def _stale(self, buffer: str, index: int) -> StateFault:
        first = self._left_by[buffer]
        left, home = self._journal.records[first], self._tracker.home(buffer)
        lane = self._clocks.lane(getattr(left, "queue", home))
        number, _ = self._elsewhere.get(buffer, {}).get(lane, (0, first))
        missing = None
        if not includes(self._clocks.now(home), lane, number):
            missing = self._journal.missing_edge(first, home, self._clocks.fences)
        message = (
            f"{lane_name(home)} is given a call that uses {buffer}, which the tracker holds in "
            f"{self._tracker.state(buffer)} since record {first}; on the device it is in {COMMON}"
        )
        remedy = f"add assume_common({buffer}) after {lane_name(home)}'s wait and before record {index}"
        moment = self._journal.moment(first, index, missing)
        return StateFault("tracker-stale", index, buffer, message, remedy, moment, first, missing)

    def _too_early(self, record: AssumeCommon, index: int) -> tuple[StateFault, ...]:
        home = self._tracker.home(record.buffer)
        clock = self._clocks.now(home)
        faults = []
        for lane, (number, first) in sorted(self._elsewhere.get(record.buffer, {}).items()):
            if includes(clock, lane, number):
                continue
            missing = self._journal.missing_edge(first, home, self._clocks.fences)
            message = (
                f"the program takes {record.buffer} to be in {COMMON}, but {lane_name(home)} does not wait yet "
                f"for record {first}, where {lane_name(missing.signaller)} uses it"
            )
            remedy = f"then assume_common({record.buffer}): first the wait, then the claim"
            moment = self._journal.moment(first, index, missing)
            faults.append(
                StateFault("assumed-too-early", index, record.buffer, message, remedy, moment, first, missing)
            )
        return tuple(faults)
