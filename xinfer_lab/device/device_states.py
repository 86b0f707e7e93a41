"""The states that a device keeps for its buffers, and what it refuses."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from xinfer_lab.device.errors import StateError, StreamError
from xinfer_lab.device.journal import Journal
from xinfer_lab.device.kernels import KernelTable
from xinfer_lab.device.node_names import node_of, on_node
from xinfer_lab.device.record_words import describe, lane_name
from xinfer_lab.device.records import Allocate, Copy, Dispatch, Record, Transition
from xinfer_lab.device.state_faults import StateFault
from xinfer_lab.device.states import (
    COMMON,
    COPY_DEST,
    COPY_SOURCE,
    DIRECT,
    FIXED_STATES,
    READ_STATES,
    join_states,
    required_states,
    split_state,
)

__all__ = ["DeviceStates"]

_COPY_QUEUE_STATES = frozenset({COPY_DEST, COPY_SOURCE})


@dataclass(slots=True)
class _InCall:
    """A buffer's state within a call: the record that put it there, and whether by promotion."""

    parts: frozenset[str]
    record: int
    promoted: bool


class DeviceStates:
    """Buffer states as the device sees them, record by record.

    Every buffer whose heap has no fixed state starts each call in COMMON; ``record.call`` says which commands are one
    call, and the calls of a queue are numbered upwards. ``direct`` names the queues that may use any state (it is read
    each time, so it may grow), beside those of further cards; all others are copy queues.
    """

    def __init__(self, kernels: KernelTable, direct: Collection[str] = (DIRECT,)) -> None:
        self._kernels = kernels
        self._direct = direct
        self._journal = Journal()
        self._heaps: dict[str, str] = {}
        self._calls: dict[str, int] = {}
        self._states: dict[str, dict[str, _InCall]] = {}

    def state(self, buffer: str, queue: str = DIRECT) -> str:
        """The state of ``buffer`` as the open call of ``queue`` sees it."""
        if (heap := self._heaps.get(buffer)) in FIXED_STATES:
            return FIXED_STATES[heap]
        entry = self._states.get(queue, {}).get(buffer)
        return join_states(entry.parts) if entry is not None else COMMON

    def observe(self, record: Record) -> tuple[StateFault, ...]:
        """Take in the next record of the stream and return what the device refuses about it.

        After a refusal the buffer counts as being in the state asked for, so that one mistake is reported once.
        Raises `StreamError` where a queue takes up a call that it has left.
        """
        index = self._journal.append(record)
        match record:
            case Allocate():
                self._heaps[record.buffer] = record.heap
            case Transition():
                self._enter_call(record.queue, record.call, index)
                return self._transition(record, index)
            case Copy() | Dispatch():
                self._enter_call(record.queue, record.call, index)
                return self._uses(record, index)
        return ()

    def _computes(self, queue: str) -> bool:
        return queue in self._direct or queue == on_node(DIRECT, node_of(queue))

    def _enter_call(self, queue: str, call: int, index: int) -> None:
        last = self._calls.get(queue)
        if last is not None and call < last:
            raise StreamError(
                f"record {index} belongs to call {call} of queue {queue!r}, which has gone on to call {last}: "
                "the calls of a queue are numbered upwards, and their commands follow one another"
            )
        if call != last:
            self._calls[queue] = call
            self._states[queue] = {}

    def _uses(self, record: Copy | Dispatch, index: int) -> tuple[StateFault, ...]:
        if isinstance(record, Copy) and record.src.buffer == record.dst.buffer:
            buffer = record.src.buffer
            message = f"the copy needs {buffer} in COPY_SOURCE and in COPY_DEST, and a buffer cannot be in both"
            return (self._fault("rejected", index, buffer, message, "copy by way of another buffer, or with a kernel"),)
        faults = [
            fault
            for buffer, state in sorted(required_states(record, self._kernels).items())
            if (fault := self._use(record, index, buffer, state)) is not None
        ]
        return tuple(faults)

    def _use(self, record: Copy | Dispatch, index: int, buffer: str, state: str) -> StateFault | None:
        needed, states = split_state(state), self._states[record.queue]
        who = f"{describe(record)} on {lane_name(record.queue)}"
        if (heap := self._heaps.get(buffer)) in FIXED_STATES:
            if needed <= split_state(FIXED_STATES[heap]):
                return None
            message = f"{who} needs {buffer} in {state}, but buffers of the {heap} heap stay in {FIXED_STATES[heap]}"
            return self._fault("rejected", index, buffer, message, "use a buffer of the default heap there")
        if not self._computes(record.queue) and not needed <= _COPY_QUEUE_STATES:
            message = f"{who} needs {buffer} in {state}, which a copy queue cannot use"
            return self._fault(
                "copy-queue-state",
                index,
                buffer,
                message,
                f"run it on {lane_name(on_node(DIRECT, node_of(record.queue)))}",
            )
        entry = states.get(buffer)
        if entry is None or not entry.parts:
            states[buffer] = _InCall(needed, index, promoted=True)
            return None
        if needed <= entry.parts:
            return None
        if entry.promoted and entry.parts | needed <= READ_STATES:
            states[buffer] = _InCall(entry.parts | needed, index, promoted=True)
            return None
        current, how = join_states(entry.parts), "promoted it" if entry.promoted else "took it"
        states[buffer] = _InCall(needed, index, promoted=False)
        message = f"{who} needs {buffer} in {state}, but record {entry.record} {how} to {current} in the same call"
        remedy = f"record a barrier {buffer}: {current} -> {state} before record {index}"
        return self._fault("rejected", index, buffer, message, remedy, entry.record)

    def _transition(self, record: Transition, index: int) -> tuple[StateFault, ...]:
        buffer, states = record.buffer, self._states[record.queue]
        try:
            before, after = split_state(record.before), split_state(record.after)
        except StateError as error:
            return (self._fault("rejected", index, buffer, f"the barrier of {buffer}: {error}", "name a known state"),)
        if (heap := self._heaps.get(buffer)) in FIXED_STATES:
            message = f"a barrier of {buffer}, but buffers of the {heap} heap stay in {FIXED_STATES[heap]}"
            return (self._fault("rejected", index, buffer, message, "leave the barrier out"),)
        entry = states.get(buffer)
        current = entry.parts if entry is not None else frozenset()
        states[buffer] = _InCall(after, index, promoted=False)
        if not self._computes(record.queue) and not before | after <= _COPY_QUEUE_STATES:
            message = f"{describe(record)} on {lane_name(record.queue)}, which is a copy queue"
            direct = lane_name(on_node(DIRECT, node_of(record.queue)))
            remedy = f"record this barrier on {direct}, or none: first use there promotes"
            return (self._fault("copy-queue-state", index, buffer, message, remedy),)
        if before == after:
            message = f"the barrier of {buffer} goes from {record.before} to the same state"
            return (self._fault("rejected", index, buffer, message, "leave the barrier out"),)
        if not current or before == current:
            return ()
        assert entry is not None
        how = "promoted it" if entry.promoted else "took it"
        message = (
            f"the barrier says that {buffer} is in {record.before}, but record {entry.record} {how} to "
            f"{join_states(current)} in the same call"
        )
        remedy = f"record the barrier as {buffer}: {join_states(current)} -> {record.after}"
        return (self._fault("rejected", index, buffer, message, remedy, entry.record),)

    def _fault(
        self, kind: str, index: int, buffer: str, message: str, remedy: str, first: int | None = None
    ) -> StateFault:
        moment = self._journal.moment(index if first is None else first, index)
        return StateFault(kind, index, buffer, message, remedy, moment, first)
