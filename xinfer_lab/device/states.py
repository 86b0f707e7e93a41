"""Resource states of buffers as D3D12 has them, and the tracker with which a program keeps account of them.

A default-heap buffer starts every ExecuteCommandLists call in COMMON. Its first use in the call promotes it to the
state that the use needs; further reads join the reads that it was promoted to; any other use in the same call needs a
barrier from the state it is in. When the call is over it is back in COMMON, on any queue, barriers or not. A barrier
recorded for a buffer in COMMON may name COMMON or any state that a buffer can be promoted to as its ``before``.

Facts after Microsoft's documentation, "Using Resource Barriers to Synchronize Resource States in Direct3D 12", sections
on implicit state transitions. UAV barriers are left out: on one queue here a command is over before the next one
starts.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from xinfer_lab.device.errors import StateError
from xinfer_lab.device.kernels import KernelTable
from xinfer_lab.device.node_names import on_node
from xinfer_lab.device.records import Copy, Record

__all__ = [
    "COMMON",
    "COPY_DEST",
    "COPY_SOURCE",
    "DIRECT",
    "FIXED_STATES",
    "GENERIC_READ",
    "NON_PIXEL_SHADER_RESOURCE",
    "READ_STATES",
    "STATES",
    "UNORDERED_ACCESS",
    "StateTracker",
    "join_states",
    "required_states",
    "split_state",
]

COMMON = "COMMON"
COPY_DEST = "COPY_DEST"
COPY_SOURCE = "COPY_SOURCE"
NON_PIXEL_SHADER_RESOURCE = "NON_PIXEL_SHADER_RESOURCE"
UNORDERED_ACCESS = "UNORDERED_ACCESS"
GENERIC_READ = "GENERIC_READ"

STATES = (COMMON, COPY_DEST, COPY_SOURCE, NON_PIXEL_SHADER_RESOURCE, UNORDERED_ACCESS, GENERIC_READ)
"""Every state that has a name here. GENERIC_READ is all read states at once."""

READ_STATES = frozenset({COPY_SOURCE, NON_PIXEL_SHADER_RESOURCE})
"""The states that may be combined with one another: a buffer may be in several of them at once."""

FIXED_STATES = {"upload": GENERIC_READ, "readback": COPY_DEST}
"""The state that buffers of a heap stay in for as long as they live."""

DIRECT = "direct"
"""The name of the queue that may use any state. All others are copy queues."""


@functools.lru_cache(maxsize=64)
def split_state(state: str) -> frozenset[str]:
    """The single states that ``state`` combines: none for COMMON, two for ``COPY_SOURCE|NON_PIXEL_SHADER_RESOURCE``.

    Raises `StateError` for an unknown name, and for a write state combined with another.
    """
    names = state.split("|")
    if unknown := [name for name in names if name not in STATES]:
        raise StateError(f"{unknown[0]!r} is no resource state; wanted one of {', '.join(STATES)}")
    parts = frozenset(name for name in names if name not in (COMMON, GENERIC_READ))
    if GENERIC_READ in names:
        parts |= READ_STATES
    if len(names) > 1 and (COMMON in names or not parts <= READ_STATES):
        raise StateError(f"{state} combines states that exclude one another; only read states combine")
    return parts


def join_states(parts: frozenset[str]) -> str:
    """The name of the combination of ``parts``; COMMON if there are none."""
    return "|".join(sorted(parts)) or COMMON


def required_states(record: Record, kernels: KernelTable) -> dict[str, str]:
    """The state that ``record`` needs each buffer to be in that it touches, by buffer; empty unless it is a queue's
    command.

    A copy needs COPY_DEST and COPY_SOURCE. A kernel needs UNORDERED_ACCESS for a buffer of which it writes any byte,
    and NON_PIXEL_SHADER_RESOURCE for one that it only reads.
    """
    if isinstance(record, Copy):
        return {record.src.buffer: COPY_SOURCE, record.dst.buffer: COPY_DEST}
    if record.op != "dispatch":
        return {}
    access = kernels.access(record)
    states = dict.fromkeys((span.buffer for span in access.reads), NON_PIXEL_SHADER_RESOURCE)
    return states | dict.fromkeys((span.buffer for span in access.writes), UNORDERED_ACCESS)


_COMMON: frozenset[str] = frozenset()


class StateTracker:
    """The program's own account of buffer states: from it a command list knows which barriers to record.

    It remembers the last state that was recorded for each buffer. The end of a call on the direct queue returns what
    that call touched to COMMON: whatever the direct queue does next finds it so. What a call on another queue touched
    keeps its state here, since the host cannot know that the call is over; `assume_common` says so, once the direct
    queue waits for that queue's fence. With several cards, *the* direct queue is that of the card a buffer
    lies on. Buffers of upload and readback heaps never change and are not tracked; those of a custom heap are treated
    like those of the default heap.
    """

    def __init__(self, direct: str = DIRECT) -> None:
        self._direct = direct
        self._states: dict[str, frozenset[str]] = {}
        self._fixed: dict[str, str] = {}
        self._homes: dict[str, str] = {}
        self._queue: str | None = None
        self._before: dict[str, frozenset[str]] = {}
        self._touched: set[str] = set()
        self._promoted: set[str] = set()

    def allocate(self, buffer: str, heap: str, node: int = 0) -> None:
        """``buffer`` was created on ``heap``: in a fixed state on upload and readback heaps, else in COMMON."""
        self.free(buffer)
        if node:
            self._homes[buffer] = on_node(self._direct, node)
        if heap in FIXED_STATES:
            self._fixed[buffer] = FIXED_STATES[heap]

    def free(self, buffer: str) -> None:
        """``buffer`` is gone; its name may be used again."""
        self._states.pop(buffer, None)
        self._before.pop(buffer, None)
        self._fixed.pop(buffer, None)
        self._homes.pop(buffer, None)

    def begin_call(self, queue: str) -> None:
        """What is recorded from here on is one ExecuteCommandLists call of ``queue``. Raises `StateError` inside a
        call."""
        if self._queue is not None:
            raise StateError(f"a call of queue {self._queue!r} is still being recorded; end it before one of {queue!r}")
        self._queue = queue
        self._before = dict(self._states)
        self._touched.clear()
        self._promoted.clear()

    def use(self, buffer: str, state: str) -> tuple[str, str] | None:
        """A command that needs ``buffer`` in ``state`` is recorded. Returns the barrier (before, after) to record
        first.

        None where none is needed: the buffer is in that state, or is promoted to it from COMMON, or reads on. Raises
        `StateError` outside of a call.
        """
        needed, current = split_state(state), self._enter(buffer)
        if buffer in self._fixed or needed <= current:
            return None
        if not current:
            self._promoted.add(buffer)
            self._states[buffer] = needed
            return None
        reads = current | needed <= READ_STATES
        after = current | needed if reads else needed
        self._states[buffer] = after
        if reads and buffer in self._promoted:
            return None
        self._promoted.discard(buffer)
        return join_states(current), join_states(after)

    def barrier(self, buffer: str, after: str) -> None:
        """The program records a barrier of its own that takes ``buffer`` to ``after``. Raises `StateError` outside of
        a call."""
        parts = split_state(after)
        self._enter(buffer)
        self._promoted.discard(buffer)
        if buffer not in self._fixed:
            self._states[buffer] = parts

    def end_call(self, queue: str) -> None:
        """The call of ``queue`` is complete. Raises `StateError` when that queue has none."""
        if self._queue != queue:
            raise StateError(f"queue {queue!r} has no call to end; being recorded: {self._queue!r}")
        for buffer in self._touched:
            if self.home(buffer) == queue:
                self._states.pop(buffer, None)
        self._queue = None

    def last_call(self) -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
        """The states of the buffers that the last call touched, before it and after it (empty: COMMON)."""
        touched = sorted(self._touched)
        before = {buffer: self._before.get(buffer, _COMMON) for buffer in touched}
        return before, {buffer: self._states.get(buffer, _COMMON) for buffer in touched}

    def are(self, states: Mapping[str, frozenset[str]]) -> bool:
        """Whether no call is being recorded, and each buffer is in the state that ``states`` says."""
        if self._queue is not None:
            return False
        mine = self._states
        if not mine:
            return not any(states.values())
        return all(mine.get(buffer, _COMMON) == state for buffer, state in states.items())

    def repeat_call(self, after: Mapping[str, frozenset[str]]) -> None:
        """A call was executed again that leaves its buffers in the states ``after``."""
        for buffer, state in after.items():
            if state:
                self._states[buffer] = state
            else:
                self._states.pop(buffer, None)

    def abandon_call(self) -> None:
        """What was recorded since `begin_call` is never executed: every state is what it was then."""
        self._states, self._queue = self._before, None

    def home(self, buffer: str) -> str:
        """The direct queue of the card that ``buffer`` lies on."""
        return self._homes.get(buffer, self._direct)

    def assume_common(self, buffer: str) -> None:
        """Take ``buffer`` to be in COMMON. True once the direct queue waits for the last other queue that used it."""
        self._states.pop(buffer, None)
        self._promoted.discard(buffer)

    def state(self, buffer: str) -> str:
        """The state that ``buffer`` is tracked in."""
        if buffer in self._fixed:
            return self._fixed[buffer]
        return join_states(self._states.get(buffer, frozenset()))

    def _enter(self, buffer: str) -> frozenset[str]:
        if self._queue is None:
            raise StateError(f"{buffer!r} is used outside of a call; begin_call says which queue will execute it")
        self._touched.add(buffer)
        return self._states.get(buffer, frozenset())
