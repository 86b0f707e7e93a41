"""When everything in a command stream happened: on the virtual clock, or measured on a GPU."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["Flow", "MemorySample", "Timeline", "TimelineEvent"]


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """Record number ``record`` occupied ``lane`` (a queue's name or ``"host"``) from ``start`` to ``end`` seconds.

    ``kind`` is ``"copy"``, ``"dispatch"``, ``"wait"`` (the lane stood still for a fence), ``"host_write"``,
    ``"host_read"`` or ``"host_wait"``. Signals and bookkeeping take no time and are no events.
    """

    record: int
    lane: str
    kind: str
    label: str
    start: float
    end: float

    @property
    def duration(self) -> float:
        """Seconds from start to end."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Flow:
    """A fence edge: the signal in record ``signal`` released the wait in record ``wait``; times in seconds."""

    fence: str
    value: int
    signal: int
    signal_time: float
    signal_lane: str
    wait: int
    wait_time: float
    wait_lane: str


@dataclass(frozen=True, slots=True)
class MemorySample:
    """From ``time`` seconds on, ``used`` bytes of device memory are allocated."""

    time: float
    used: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """Events in record order, fence edges, and the device memory curve."""

    lanes: tuple[str, ...]
    events: tuple[TimelineEvent, ...]
    flows: tuple[Flow, ...]
    memory: tuple[MemorySample, ...]
    clock: str
    """What measured it: ``"virtual clock, <GpuSpec name>"`` or the GPU's name."""

    @property
    def duration(self) -> float:
        """Seconds from 0 to the end of the last event."""
        return max((event.end for event in self.events), default=0.0)

    @property
    def peak_memory(self) -> int:
        """The most bytes of device memory allocated at any time."""
        return max((sample.used for sample in self.memory), default=0)

    def busy(self, lane: str, *kinds: str) -> float:
        """Seconds that ``lane`` spent in events of ``kinds`` (default: copies and dispatches)."""
        wanted = kinds or ("copy", "dispatch")
        return sum(event.duration for event in self.events if event.lane == lane and event.kind in wanted)

    def since(self, record: int) -> Timeline:
        """What records from number ``record`` on did, with time counted from the start of the first of their events.

        Cuts off loading, for instance. Memory in use by then is the first sample.
        """
        events = [event for event in self.events if event.record >= record]
        origin = min((event.start for event in events), default=self.duration)
        used = 0
        for sample in self.memory:
            if sample.time <= origin:
                used = sample.used
        later = [replace(sample, time=sample.time - origin) for sample in self.memory if sample.time > origin]
        return replace(
            self,
            events=tuple(replace(event, start=event.start - origin, end=event.end - origin) for event in events),
            flows=tuple(
                replace(flow, signal_time=max(0.0, flow.signal_time - origin), wait_time=flow.wait_time - origin)
                for flow in self.flows
                if flow.wait >= record
            ),
            memory=(MemorySample(0.0, used), *later) if self.memory else (),
        )
