"""Timelines and command streams built by hand, with no simulator: what the views are tried on."""

from __future__ import annotations

from dataclasses import dataclass

from xinfer_lab.device.records import Copy, Dispatch, HostWait, HostWrite, Record, Signal, Source, Span, View, Wait
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.device.timeline import Flow, MemorySample, Timeline, TimelineEvent

MIB = 2**20


@dataclass(frozen=True)
class Example:
    """A command stream and when it happened."""

    stream: CommandStream
    timeline: Timeline


class _Clock:
    """Lays records out on three lanes in issue order: a lane starts a record when it is free and its waits are over."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.events: list[TimelineEvent] = []
        self.flows: list[Flow] = []
        self.free = {"direct": 0.0, "copy": 0.0, "host": 0.0}
        self.signals: dict[tuple[str, int], tuple[int, float, str]] = {}

    def work(self, record: Record, lane: str, kind: str, label: str, seconds: float) -> None:
        start = max(self.free[lane], self.free["host"])
        self.events.append(TimelineEvent(len(self.records), lane, kind, label, start, start + seconds))
        self.free[lane] = start + seconds
        self.records.append(record)

    def signal(self, lane: str, fence: str, value: int) -> None:
        self.signals[fence, value] = (len(self.records), max(self.free[lane], self.free["host"]), lane)
        self.records.append(Signal(queue=lane, fence=fence, value=value))

    def wait(self, lane: str, fence: str, value: int) -> None:
        index = len(self.records)
        signal, at, signal_lane = self.signals[fence, value]
        now = max(self.free[lane], self.free["host"])
        if at > now:
            kind = "host_wait" if lane == "host" else "wait"
            self.events.append(TimelineEvent(index, lane, kind, f"{fence} = {value}", now, at))
        self.free[lane] = max(now, at)
        self.flows.append(Flow(fence, value, signal, at, signal_lane, index, self.free[lane], lane))
        host = HostWait(fence=fence, value=value)
        self.records.append(host if lane == "host" else Wait(queue=lane, fence=fence, value=value))


def stream_layers(
    *,
    layers: int = 6,
    pool: int = 2,
    steps: int = 1,
    transfer: float = 1e-3,
    compute: float = 1e-3,
    serial: bool = False,
    layer_bytes: int = 4 * MIB,
    tensors: int = 1,
    ring: bool = True,
) -> Example:
    """Layers through ``pool`` slots. ``ring=False`` takes slot = layer mod pool: wrong unless pool divides layers."""
    clock = _Clock()
    uploads = [(n, n % layers, (n if ring else n % layers) % pool) for n in range(steps * layers)]

    def upload(number: int) -> None:
        _, layer, slot = uploads[number]
        if number >= pool:
            clock.wait("copy", "layer done", number - pool + 1)
        for part in range(tensors):
            size = layer_bytes // tensors
            source = Source(f"model.layers.{layer}.part{part}", 0, size)
            clock.work(
                HostWrite(dst=Span("staging", part * size, size), source=source),
                "host",
                "host_write",
                f"layer {layer}",
                2e-5,
            )
            copy = Copy(
                queue="copy",
                dst=Span(f"slot[{slot}].part{part}", 0, size),
                src=Span("staging", part * size, size),
                call=number,
                label=f"upload layer {layer}",
            )
            clock.work(copy, "copy", "copy", f"upload layer {layer}", transfer / tensors)
        clock.signal("copy", "slot filled", number + 1)

    ahead = 1 if serial else min(pool, len(uploads))
    for number in range(ahead):
        upload(number)
    for number, layer, slot in uploads:
        clock.wait("direct", "slot filled", number + 1)
        views = {
            "attention": View(f"slot[{slot}].part0", 0, (layer_bytes // tensors,), "uint8"),
            "hidden": View("hidden", 0, (8,), "uint8"),
        }
        clock.work(
            Dispatch(
                queue="direct",
                kernel="decoder_layer",
                operands=views,
                params={"layer": layer},
                call=number,
                label=f"layer {layer}",
            ),
            "direct",
            "dispatch",
            f"layer {layer}",
            compute,
        )
        clock.signal("direct", "layer done", number + 1)
        if number + ahead < len(uploads):
            if serial:
                clock.wait("host", "layer done", number + 1)
            upload(number + ahead)
    clock.wait("host", "layer done", len(uploads))
    memory = tuple(MemorySample(i * 2e-5, 3 * MIB + i * layer_bytes) for i in range(pool + 1))
    events = tuple(sorted(clock.events, key=lambda event: event.record))
    name = "virtual clock, lab, T_comp / T_trans = 1"
    timeline = Timeline(("copy", "direct", "host"), events, tuple(clock.flows), memory, name)
    return Example(CommandStream(clock.records), timeline)


def empty() -> Timeline:
    return Timeline((), (), (), (), "")


def one_event(start: float = 0.0, end: float = 1e-3, label: str = "layer 0") -> Timeline:
    return Timeline(
        ("direct",), (TimelineEvent(0, "direct", "dispatch", label, start, end),), (), (), "virtual clock, test"
    )


def zero_length(count: int = 3) -> Timeline:
    events = tuple(TimelineEvent(i, "direct", "dispatch", "nothing", 0.0, 0.0) for i in range(count))
    return Timeline(("direct",), events, (), (MemorySample(0.0, 5),), "virtual clock, test")


def many(count: int = 5000) -> Timeline:
    lanes = ("copy", "direct")
    events = tuple(
        TimelineEvent(i, lanes[i % 2], ("copy", "dispatch")[i % 2], f"layer {i // 2 % 28}", i * 1e-4, i * 1e-4 + 1.5e-4)
        for i in range(count)
    )
    flows = tuple(
        Flow("f", i, 2 * i, 2 * i * 1e-4 + 1.5e-4, "copy", 2 * i + 1, (2 * i + 2) * 1e-4, "direct")
        for i in range(count // 2)
    )
    memory = tuple(MemorySample(i * 1e-4, (i % 7) * MIB) for i in range(count))
    return Timeline(lanes, events, flows, memory, "virtual clock, test")
