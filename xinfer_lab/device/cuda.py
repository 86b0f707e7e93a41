"""`CudaDevice`: real streams, events and pinned memory. Commands are issued as they come."""

from __future__ import annotations

import bisect
import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.errors import OutOfDeviceMemory, StreamError
from xinfer_lab.device.gpu_spec import KERNEL_COPY
from xinfer_lab.device.graphs import GRAPH_MEMORY, RECORDED_LISTS, Graphs, OnStream, RecordedGraph, has_triton
from xinfer_lab.device.host_copy import copy_bytes
from xinfer_lab.device.node_names import node_of, on_node
from xinfer_lab.device.peers import PeerCopies, equal_cards
from xinfer_lab.device.pinned import PinnedMemory, seen_by_gpu
from xinfer_lab.device.queue import KeptCall
from xinfer_lab.device.records import (
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
    Source,
    Transition,
    View,
    Wait,
)
from xinfer_lab.device.registered import RegisteredMap, refusal
from xinfer_lab.device.tensors import POISON, digest_of, slice_span, slice_view
from xinfer_lab.device.timeline import Flow, MemorySample, Timeline, TimelineEvent
from xinfer_lab.device.virtual_clock import label_of

__all__ = ["CudaDevice"]


LIBRARY_WORKSPACE = "cuBLAS workspace"
"""The holder of what the matrix library keeps for each stream that it has run on; torch allocates it on first use."""

_MOST_VIEWS = 8192

_free_streams: dict[torch.device, list[torch.cuda.Stream]] = {}
# A stream that cuBLAS has run on holds a workspace for good: streams are handed on from one device object to the next.


@dataclass(slots=True)
class _EventFence:
    """A fence as CUDA has it: one event for each value signalled."""

    values: list[int] = field(default_factory=list)
    events: list[torch.cuda.Event] = field(default_factory=list)

    def event_for(self, value: int) -> torch.cuda.Event:
        """The event of the first signal that reaches ``value``; the stream rules made sure that there is one."""
        return self.events[bisect.bisect_left(self.values, value)]


class CudaDevice(Device):
    """CUDA device number ``index``. Queue = stream, fence value = event, upload heap = pinned host memory.

    Several numbers make a device of several nodes, one on each card, or more on the same one. A queue's stream is on
    the card of its node, and so are the events that it signals; the streams of other cards may wait for them. Between
    nodes `PeerCopies` copies, with ``peer_access=False`` through host memory even where cards reach each other.

    Buffers are allocated once and owned by this object, so no stream-aware allocator can hand their memory on too
    early. ``check`` defaults to False here: when on, each command is checked before it is issued
    (``on_hazard="raise"`` by default) and memory is filled with NaN bytes, which costs time. ``measure`` records timing
    events around every command for `timeline`. ``pin=False`` leaves the heaps that queues copy from in ordinary memory,
    to see what that costs: the driver stages every copy from them, and the host stands still meanwhile. Other
    arguments: see `Device`. Raises `CudaUnavailable`.

    Command lists that are kept (`CommandQueue.record`) are captured as CUDA graphs and replayed, where their kernels
    allow it; what the graphs take is counted as `RECORDED_LISTS` from the start. With ``graphs=False``, and for all
    other commands, every kernel is launched each time; the bytes are the same.
    """

    def __init__(
        self,
        index: int | Sequence[int] = 0,
        *,
        measure: bool = False,
        pin: bool = True,
        graphs: bool = True,
        peer_access: bool = True,
        **options: Any,
    ) -> None:
        self.cards = equal_cards([index] if isinstance(index, int) else index)
        self.torch_device = self.cards[0]
        self.name = torch.cuda.get_device_name(self.torch_device)
        self.measure, self.pin = measure, pin
        self._memory: dict[str, torch.Tensor] = {}
        self._views: dict[View, torch.Tensor] = {}
        self._pinned: dict[str, PinnedMemory | RegisteredMap] = {}
        self._streams: dict[str, torch.cuda.Stream] = {}
        self._on: dict[str, OnStream] = {}
        self._inference = torch.inference_mode()
        self._fences: dict[str, _EventFence] = {}
        self._marks: list[tuple[int, Copy | Dispatch, torch.cuda.Event, torch.cuda.Event]] = []
        self._signals: list[tuple[int, Signal]] = []
        self._waits: list[tuple[int, Wait, torch.cuda.Event]] = []
        self._graphs: dict[str, Graphs] = {}
        self._peers = PeerCopies(direct=peer_access)
        self.peers = self._peers.all_reach(self.cards)
        super().__init__(**{"check": False, "on_hazard": "raise", **options}, nodes=len(self.cards))
        try:
            torch._C._cuda_clearCublasWorkspaces()
            for node, memory in enumerate(self.memories):
                queue = on_node("direct", node)
                memory.take(LIBRARY_WORKSPACE, self._warm_up(self._streams[queue]))
                if graphs and has_triton():
                    memory.take(RECORDED_LISTS, GRAPH_MEMORY)
                    self._graphs[queue] = Graphs(self.kernels, queue, self._streams[queue])
        except BaseException:
            self._shut()
            raise
        self._origins = self._same_moment() if measure else {}

    @property
    def graphs(self) -> Graphs | None:
        """The graphs of the first card; None where command lists are not captured."""
        return self._graphs.get("direct")

    def _same_moment(self) -> dict[torch.device, tuple[torch.cuda.Event, float]]:
        """For each card an event, and the host's time when it was reached: what one card measures says nothing about
        another's events. Off by what the host takes to hear of an event, some ten microseconds."""
        moments = {}
        for node, card in enumerate(self.cards):
            event = self._record_event(self._streams[on_node("direct", node)])
            event.synchronize()
            moments[card] = event, time.perf_counter()
        return moments

    def _add_queue(self, name: str) -> None:
        card = self.cards[node_of(name)]
        free = _free_streams.setdefault(card, [])
        stream = self._streams[name] = free.pop(0) if free else torch.cuda.Stream(card)
        self._on[name] = OnStream(stream)

    def stream_of(self, queue: str) -> torch.cuda.Stream:
        """The CUDA stream that is the queue of that name, for events of one's own."""
        return self._streams[queue]

    def _warm_up(self, stream: torch.cuda.Stream) -> int:
        """Let the matrix library set itself up on a direct stream; returns the bytes that it keeps there."""
        with torch.cuda.stream(stream), torch.inference_mode():
            before = torch.cuda.memory_allocated(stream.device)
            for dtype in (torch.float32, torch.float16):
                a = torch.zeros(16, 16, dtype=dtype, device=stream.device)
                torch.nn.functional.linear(a, a, a[0])
            del a
            stream.synchronize()
            return torch.cuda.memory_allocated(stream.device) - before

    def _record_event(self, stream: torch.cuda.Stream) -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=self.measure)
        event.record(stream)
        return event

    def _perform(self, index: int, record: Record) -> tuple[torch.Tensor, Record] | None:
        match record:
            case Copy() | Dispatch():
                self._issue(index, record)
            case Signal():
                fence = self._fences.setdefault(record.fence, _EventFence())
                fence.values.append(record.value)
                fence.events.append(self._record_event(self._streams[record.queue]))
                if self.measure:
                    self._signals.append((index, record))
            case Wait():
                if record.value > 0:
                    stream = self._streams[record.queue]
                    if self.measure:
                        self._waits.append((index, record, self._record_event(stream)))
                    stream.wait_event(self._fences[record.fence].event_for(record.value))
            case Allocate():
                self._allocate(record)
            case Free():
                self._free(record.buffer)
            case HostWrite():
                copy_bytes(slice_span(self._memory, record.dst), self.sources.read(record.source))
            case HostRead():
                raw = slice_span(self._memory, record.src).clone()
                return raw, dataclasses.replace(record, digest=digest_of(raw) if self.check else "")
            case HostWait():
                if record.value > 0:
                    self._fences[record.fence].event_for(record.value).synchronize()
        return None

    @torch.inference_mode(False)
    def _allocate(self, record: Allocate) -> None:
        if record.heap == "default":
            memory = self._empty(record)
        elif record.heap in HOST_TO_DEVICE and not self.pin:
            memory = (
                self._mapped(record) if record.mapped else torch.empty(record.size, dtype=torch.uint8, device="cpu")
            )
        else:
            with torch.cuda.device(self.torch_device):  # the card whose kernels may read it; all cards copy from it
                held = (
                    RegisteredMap(self._mapped(record), self.torch_device)
                    if record.mapped
                    else PinnedMemory(record.size)
                )
            self._pinned[record.buffer] = held
            memory = held.tensor
        if self.check and not record.mapped:
            memory.fill_(POISON)
            torch.cuda.current_stream(self.cards[record.node]).synchronize()
        self._memory[record.buffer] = memory

    def _mapped(self, record: Allocate) -> torch.Tensor:
        return self.sources.read(Source(record.mapped, 0, record.size))

    def _empty(self, record: Allocate) -> torch.Tensor:
        card, use = self.cards[record.node], self.memories[record.node].use()
        try:
            return torch.empty(record.size, dtype=torch.uint8, device=card)
        except torch.OutOfMemoryError:
            free, total = torch.cuda.mem_get_info(card)
            holders = {**use.holders, "others on this GPU": total - free - use.used}
            raise OutOfDeviceMemory(record.buffer, record.size, total - free, total, holders) from None

    def map_refusal(self, source: str) -> str:
        """Why ``source`` cannot be registered with CUDA as it is, as the end of a sentence; '' if it can."""
        return refusal(self.sources.read(self.sources.whole(source)), self.torch_device)

    def _free(self, name: str) -> None:
        del self._memory[name]
        self._views.clear()
        if (pinned := self._pinned.pop(name, None)) is not None:
            pinned.close()

    def _issue(self, index: int, record: Copy | Dispatch) -> None:
        stream = self._streams[record.queue]
        start = self._record_event(stream) if self.measure else None
        with self._on[record.queue], self._inference:
            if isinstance(record, Copy):
                self._copy(record)
            else:
                tensors = {name: self._operand(view) for name, view in record.operands.items()}
                self.kernels[record.kernel].run(tensors, record.params)
        if start is not None:
            self._marks.append((index, record, start, self._record_event(stream)))

    def _perform_call(self, index: int, records: Sequence[Record], kept: KeptCall) -> bool:
        if kept.compiled is None:
            kept.compiled = self._compile(records, kept)
        match kept.compiled:
            case RecordedGraph() as graph:
                stream = self._streams[graph.queue]
                start = self._record_event(stream) if self.measure else None
                with self._on[graph.queue]:
                    self._graphs[graph.queue].replay(graph, records)
                if start is not None:
                    first = records[0]
                    assert isinstance(first, (Copy, Dispatch))
                    self._marks.append((index, first, start, self._record_event(stream)))
                return True
            case list() as copies:
                with self._on[copies[0][0]]:
                    for _, dst, src in copies:
                        dst.copy_(src, non_blocking=True)
                return True
        return False

    def _compile(self, records: Sequence[Record], kept: KeptCall) -> object:
        """A graph for dispatches; for large copies their tensors; False where neither serves, None where not yet."""
        commands = [record for record in records if not isinstance(record, Transition)]
        if self.check or (self.measure and len(commands) > 1):
            return False
        if any(isinstance(record, Copy) and self._between_nodes(record) for record in commands):
            return False
        if all(isinstance(record, Copy) and not self._by_kernel(record) for record in commands):
            if self.measure:
                return False
            return [
                (record.queue, slice_span(self._memory, record.dst), slice_span(self._memory, record.src))
                for record in commands
                if isinstance(record, Copy)
            ]
        graphs = self._graphs.get(records[0].queue) if isinstance(records[0], (Copy, Dispatch, Transition)) else None
        if graphs is None or not self.pin:
            return False
        return graphs.compile(records, kept, self._operand, self._copy)

    def _copy(self, record: Copy) -> None:
        dst, src = slice_span(self._memory, record.dst), slice_span(self._memory, record.src)
        if self._between_nodes(record):
            self._peers.copy(self._streams[record.queue], dst, src, poison=self.check)
            return
        if self.check and dst.is_cuda:
            dst.fill_(POISON)
        if self._by_kernel(record):
            torch.add(seen_by_gpu(src, self.torch_device), 0, out=dst)
        else:
            dst.copy_(src, non_blocking=True)

    def _between_nodes(self, record: Copy) -> bool:
        dst, src = (self.rules.buffers[span.buffer] for span in (record.dst, record.src))
        return dst.node != src.node and dst.heap == src.heap == "default"

    def _operand(self, view: View) -> torch.Tensor:
        # A program uses the same memory again and again; making a tensor takes longer than finding it.
        if (tensor := self._views.get(view)) is None:
            if len(self._views) >= _MOST_VIEWS:
                self._views.clear()
            tensor = self._views[view] = self._made(view)
        return tensor

    def _made(self, view: View) -> torch.Tensor:
        memory = self._memory[view.buffer]
        if memory.is_cuda:
            return slice_view(self._memory, view)
        if not self.pin:
            raise StreamError(f"{view.buffer!r} is in host memory that is not pinned: a kernel cannot read it there")
        return slice_view({view.buffer: seen_by_gpu(memory, self.torch_device)}, view)

    def _by_kernel(self, record: Copy) -> bool:
        """Whether a kernel copies, past the engine that large copies take turns on: see `KERNEL_COPY`."""
        small = record.dst.size <= KERNEL_COPY and self.queues[record.queue].kind == "direct"
        return (
            small
            and self.pin
            and self.cards[node_of(record.queue)] == self.torch_device
            and self.heap_of(record.src.buffer) in HOST_TO_DEVICE
            and self._memory[record.dst.buffer].is_cuda
        )

    def _release_all(self) -> None:
        for card in self.cards:
            torch.cuda.synchronize(card)
        for graphs in self._graphs.values():
            graphs.close()
        self._peers.close()
        self._views.clear()
        for name in list(self._memory):
            self._free(name)
        # The direct stream first: the next device computes where cuBLAS has its workspace already.
        streams, self._streams, self._on = self._streams, {}, {}
        for card in dict.fromkeys(self.cards):
            _free_streams[card][:0] = [stream for stream in streams.values() if stream.device == card]

    def timeline(self) -> Timeline:
        """Copies, dispatches and waits as timing events measured them; call it after the host has waited for them.

        A queue stands still from where it came to a wait until what it waits for was signalled; what the host took to
        submit the rest is not counted. Raises `RuntimeError` unless the device was opened with ``measure=True``. The
        memory curve is the budget's peak.
        """
        if not self._origins:
            raise RuntimeError("this device was not asked to measure: open it with CudaDevice(measure=True)")
        for card in self.cards:
            torch.cuda.synchronize(card)
        flows, events = [], []
        for index, record, start, end in self._marks:
            begin, kind = self._seconds_to(start), "copy" if isinstance(record, Copy) else "dispatch"
            stop = max(begin, self._seconds_to(end))
            events.append(TimelineEvent(index, record.queue, kind, label_of(record), begin, stop))
        signals = {(record.fence, record.value): (index, record) for index, record in self._signals}
        for index, wait, came in self._waits:
            fence = self._fences[wait.fence]
            signal_index, signal = signals[wait.fence, fence.values[bisect.bisect_left(fence.values, wait.value)]]
            reached, begin = self._seconds_to(fence.event_for(wait.value)), self._seconds_to(came)
            flows.append(
                Flow(
                    wait.fence, wait.value, signal_index, reached, signal.queue, index, max(begin, reached), wait.queue
                )
            )  # fmt: skip
            if reached > begin:
                events.append(TimelineEvent(index, wait.queue, "wait", label_of(wait), begin, reached))
        return Timeline(
            lanes=(*self.queues, HOST),
            events=tuple(sorted(events, key=lambda event: event.record)),
            flows=tuple(flows),
            memory=(MemorySample(0.0, sum(memory.use().peak for memory in self.memories)),),
            clock=self.name,
        )

    def _seconds_to(self, event: torch.cuda.Event) -> float:
        origin, moment = self._origins[event.device]
        _, first = self._origins[self.torch_device]
        return float(origin.elapsed_time(event)) / 1e3 + moment - first
