"""The virtual clock: when each record of a stream would run on a GPU with given figures. Works on sizes alone."""

from __future__ import annotations

import bisect
from collections import defaultdict

from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.device.kernels import Cost, KernelTable
from xinfer_lab.device.node_names import node_of, on_node
from xinfer_lab.device.records import (
    DEVICE_TO_HOST,
    HOST,
    HOST_TO_DEVICE,
    Allocate,
    Copy,
    Dispatch,
    Free,
    HostRead,
    HostWait,
    HostWrite,
    Record,
    Signal,
    Wait,
)
from xinfer_lab.device.timeline import Flow, MemorySample, Timeline, TimelineEvent

__all__ = ["VirtualClock", "label_of"]

_NOTHING = Cost(0.0, 0.0, 0)


def label_of(record: Record) -> str:
    """A short name of ``record`` for people."""
    match record:
        case Copy():
            return record.label or f"copy {record.src.buffer} to {record.dst.buffer}"
        case Dispatch():
            return record.label or record.kernel
        case HostWrite():
            return f"write {record.source.name}"
        case HostRead():
            return f"read {record.src.buffer}"
        case Wait() | HostWait():
            return f"wait {record.fence} >= {record.value}"
        case Signal():
            return f"signal {record.fence} = {record.value}"
        case Allocate() | Free():
            return f"{record.op} {record.buffer}"
        case _:
            return record.op


class VirtualClock:
    """Times records in issue order; every wait names a signal that was timed before it, so one pass is enough.

    Rules: a queue runs its commands in order, each no earlier than the host submitted it. Copies over a card's link
    take turns in each direction, also between queues, but for small ones of its direct queue (``kernel_copy`` of the
    spec); each card has a link of its own. The host is busy while it writes staging memory and while it submits a
    dispatch (``submit_time``), and blocked in a host wait; submitting anything else costs it nothing.
    """

    def __init__(self, spec: GpuSpec, kernels: KernelTable) -> None:
        self.spec = spec
        self._kernels = kernels
        self._ready: dict[str, float] = defaultdict(float)
        self._link_free: dict[str, float] = defaultdict(float)
        self._heaps: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._nodes: dict[str, int] = {}
        self._fences: dict[str, tuple[list[int], list[tuple[int, float, str]]]] = defaultdict(lambda: ([], []))
        self._events: list[TimelineEvent] = []
        self._flows: list[Flow] = []
        self._memory: list[MemorySample] = []
        self._used = 0
        self._workspace: dict[int, int] = defaultdict(int)
        self._count = 0

    @property
    def now(self) -> float:
        """Seconds: the host's time."""
        return self._ready[HOST]

    def observe(self, record: Record) -> tuple[float, float]:
        """Time the next record; returns its start and end in seconds."""
        index, self._count = self._count, self._count + 1
        lane = getattr(record, "queue", HOST)
        cost = _NOTHING
        if isinstance(record, Dispatch):
            cost = self._kernels[record.kernel].cost(record.operands, record.params)
            self._ready[HOST] += self.spec.submit_time * cost.launches
        start = max(self._ready[lane], self._ready[HOST])
        end, kind = start, ""
        match record:
            case Copy():
                links, time = self._way(record)
                start = max([start, *(self._link_free[link] for link in links)])
                end = start + time
                self._link_free.update(dict.fromkeys(links, end))
                kind = "copy"
            case Dispatch():
                end = start + self.spec.dispatch_time(cost)
                workspace = self._kernels[record.kernel].workspace(record.operands, record.params)
                self._reserve(node_of(record.queue), workspace)
                kind = "dispatch"
            case HostWrite() | HostRead():
                size = record.dst.size if isinstance(record, HostWrite) else record.src.size
                end, kind = start + size / self.spec.host_bandwidth, record.op
            case Signal():
                values, entries = self._fences[record.fence]
                values.append(record.value)
                entries.append((index, start, lane))
            case Wait() | HostWait():
                end = max(start, self._reach(record, index, lane, start))
                kind = record.op if end > start else ""
            case Allocate() | Free():
                self._account(record, start)
        self._ready[lane] = end
        if kind:
            self._events.append(TimelineEvent(index, lane, kind, label_of(record), start, end))
        return start, end

    def _way(self, record: Copy) -> tuple[list[str], float]:
        """The links that a copy takes turns on, by name, and the seconds that it takes."""
        size, direction = record.dst.size, self._direction(record)
        source, target = self._nodes.get(record.src.buffer, 0), self._nodes.get(record.dst.buffer, 0)
        if direction:
            return [on_node(direction, source if direction == "to host" else target)], self.spec.copy_time(size)
        if source == target:
            return [], self.spec.copy_time(size, over_link=False)
        if self.spec.peer_bandwidth:
            return [f"{source} to {target}"], self.spec.peer_time(size)
        return [on_node("to host", source), on_node("to device", target)], self.spec.peer_time(size)

    def _direction(self, record: Copy) -> str:
        if self._heaps.get(record.src.buffer) in HOST_TO_DEVICE:
            small = (
                record.queue == on_node("direct", node_of(record.queue)) and record.dst.size <= self.spec.kernel_copy
            )
            return "to device, by a kernel" if small else "to device"
        return "to host" if self._heaps.get(record.dst.buffer) in DEVICE_TO_HOST else ""

    def _reach(self, record: Wait | HostWait, index: int, lane: str, start: float) -> float:
        values, entries = self._fences[record.fence]
        position = bisect.bisect_left(values, record.value)
        if record.value <= 0 or position == len(values):
            return start
        signal, time, signal_lane = entries[position]
        self._flows.append(Flow(record.fence, record.value, signal, time, signal_lane, index, max(time, start), lane))
        return time

    def _account(self, record: Allocate | Free, time: float) -> None:
        if isinstance(record, Allocate):
            self._heaps[record.buffer], self._sizes[record.buffer] = record.heap, record.size
            self._nodes[record.buffer] = record.node
            change = record.size
        else:
            change = -self._sizes[record.buffer]
        if self._heaps[record.buffer] == "default":
            self._used += change
            self._memory.append(MemorySample(time, self._used))

    def _reserve(self, node: int, workspace: int) -> None:
        # As the budget counts it: from its submission on, and once a card, since its kernels run one after another.
        if workspace > self._workspace[node]:
            self._used += workspace - self._workspace[node]
            self._workspace[node] = workspace
            self._memory.append(MemorySample(self.now, self._used))

    def timeline(self, lanes: tuple[str, ...] = ()) -> Timeline:
        """Everything timed so far. ``lanes`` fixes the order of the queues; the host is last."""
        seen = dict.fromkeys((*lanes, *(e.lane for e in self._events if e.lane != HOST)))
        return Timeline(
            lanes=(*seen, HOST),
            events=tuple(self._events),
            flows=tuple(self._flows),
            memory=tuple(self._memory),
            clock=f"virtual clock, {self.spec.name}",
        )
