"""`CudaDevice`: real streams, events and pinned memory. Commands are issued as they come."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.errors import CudaUnavailable, OutOfDeviceMemory, StreamError
from xinfer_lab.device.gpu_spec import KERNEL_COPY
from xinfer_lab.device.graphs import GRAPH_MEMORY, RECORDED_LISTS, Graphs, OnStream, RecordedGraph, has_triton
from xinfer_lab.device.host_copy import copy_bytes
from xinfer_lab.device.pinned import PinnedMemory
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


class _HostBytes:
    """Pinned host memory by its address, the same on the GPU, in the form that torch takes for device memory."""

    def __init__(self, memory: torch.Tensor) -> None:
        self.__cuda_array_interface__ = {
            "shape": (memory.numel(),), "typestr": "|u1", "data": (memory.data_ptr(), False), "version": 3,
        }  # fmt: skip


def _seen_by_gpu(memory: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Pinned host bytes as a tensor that kernels can read. The caller keeps ``memory`` alive until they have."""
    return torch.as_tensor(_HostBytes(memory), device=device)


class CudaDevice(Device):
    """CUDA device number ``index``. Queue = stream, fence value = event, upload heap = pinned host memory.

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
        self, index: int = 0, *, measure: bool = False, pin: bool = True, graphs: bool = True, **options: Any
    ) -> None:
        if not torch.cuda.is_available():
            raise CudaUnavailable(
                "torch finds no CUDA device here. Install a CUDA build of torch and a driver, or use the "
                "emulated device."
            )
        if not 0 <= index < (count := torch.cuda.device_count()):
            raise CudaUnavailable(f"there is no CUDA device {index}; this machine has devices 0 to {count - 1}")
        self.torch_device = torch.device("cuda", index)
        self.name = torch.cuda.get_device_name(index)
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
        self.graphs: Graphs | None = None
        super().__init__(**{"check": False, "on_hazard": "raise", **options})
        try:
            self.memory.take(LIBRARY_WORKSPACE, self._warm_up())
            if graphs and has_triton():
                self.memory.take(RECORDED_LISTS, GRAPH_MEMORY)
                self.graphs = Graphs(self.kernels, self.torch_device, self._streams["direct"])
        except BaseException:
            self._shut()
            raise
        self._origin = self._record_event(self._streams["direct"]) if measure else None
        if self._origin is not None:
            self._origin.synchronize()

    def _add_queue(self, name: str) -> None:
        free = _free_streams.setdefault(self.torch_device, [])
        stream = self._streams[name] = free.pop(0) if free else torch.cuda.Stream(self.torch_device)
        self._on[name] = OnStream(stream)

    def stream_of(self, queue: str) -> torch.cuda.Stream:
        """The CUDA stream that is the queue of that name, for events of one's own."""
        return self._streams[queue]

    def _warm_up(self) -> int:
        """Let the matrix library set itself up on the direct stream; returns the bytes that it keeps there."""
        with torch.cuda.stream(self._streams["direct"]), torch.inference_mode():
            torch._C._cuda_clearCublasWorkspaces()
            before = torch.cuda.memory_allocated(self.torch_device)
            for dtype in (torch.float32, torch.float16):
                a = torch.zeros(16, 16, dtype=dtype, device=self.torch_device)
                torch.nn.functional.linear(a, a, a[0])
            del a
            self._streams["direct"].synchronize()
            return torch.cuda.memory_allocated(self.torch_device) - before

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
            held = (
                RegisteredMap(self._mapped(record), self.torch_device) if record.mapped else PinnedMemory(record.size)
            )
            self._pinned[record.buffer] = held
            memory = held.tensor
        if self.check and not record.mapped:
            memory.fill_(POISON)
            torch.cuda.current_stream(self.torch_device).synchronize()
        self._memory[record.buffer] = memory

    def _mapped(self, record: Allocate) -> torch.Tensor:
        return self.sources.read(Source(record.mapped, 0, record.size))

    def _empty(self, record: Allocate) -> torch.Tensor:
        try:
            return torch.empty(record.size, dtype=torch.uint8, device=self.torch_device)
        except torch.OutOfMemoryError:
            free, total = torch.cuda.mem_get_info(self.torch_device)
            holders = {**self.memory.use().holders, "others on this GPU": total - free - self.memory.use().used}
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
                assert self.graphs is not None
                stream = self._streams[graph.queue]
                start = self._record_event(stream) if self.measure else None
                with self._on[graph.queue]:
                    self.graphs.replay(graph, records)
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
        if all(isinstance(record, Copy) and not self._by_kernel(record) for record in commands):
            if self.measure:
                return False
            return [
                (record.queue, slice_span(self._memory, record.dst), slice_span(self._memory, record.src))
                for record in commands
                if isinstance(record, Copy)
            ]
        if self.graphs is None or not self.pin:
            return False
        return self.graphs.compile(records, kept, self._operand, self._copy)

    def _copy(self, record: Copy) -> None:
        dst, src = slice_span(self._memory, record.dst), slice_span(self._memory, record.src)
        if self.check and dst.is_cuda:
            dst.fill_(POISON)
        if self._by_kernel(record):
            torch.add(_seen_by_gpu(src, self.torch_device), 0, out=dst)
        else:
            dst.copy_(src, non_blocking=True)

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
        return slice_view({view.buffer: _seen_by_gpu(memory, self.torch_device)}, view)

    def _by_kernel(self, record: Copy) -> bool:
        """Whether a kernel copies, past the engine that large copies take turns on: see `KERNEL_COPY`."""
        small = record.dst.size <= KERNEL_COPY and self.queues[record.queue].kind == "direct"
        return (
            small
            and self.pin
            and self.heap_of(record.src.buffer) in HOST_TO_DEVICE
            and self._memory[record.dst.buffer].is_cuda
        )

    def _release_all(self) -> None:
        torch.cuda.synchronize(self.torch_device)
        if self.graphs is not None:
            self.graphs.close()
        self._views.clear()
        for name in list(self._memory):
            self._free(name)
        # The direct stream first: the next device computes where cuBLAS has its workspace already.
        streams, self._streams, self._on = self._streams, {}, {}
        _free_streams[self.torch_device][:0] = streams.values()

    def timeline(self) -> Timeline:
        """Copies, dispatches and waits as timing events measured them; call it after the host has waited for them.

        A queue stands still from where it came to a wait until what it waits for was signalled; what the host took to
        submit the rest is not counted. Raises `RuntimeError` unless the device was opened with ``measure=True``. The
        memory curve is the budget's peak.
        """
        if self._origin is None:
            raise RuntimeError("this device was not asked to measure: open it with CudaDevice(measure=True)")
        torch.cuda.synchronize(self.torch_device)
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
            memory=(MemorySample(0.0, self.memory.use().peak),),
            clock=self.name,
        )

    def _seconds_to(self, event: torch.cuda.Event) -> float:
        assert self._origin is not None
        return float(self._origin.elapsed_time(event)) / 1e3
