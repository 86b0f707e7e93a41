"""`EmulatedDevice`: a GPU without a GPU. Commands wait until the host does, then run in an order that fences allow."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.errors import OutOfHostMemory, format_bytes
from xinfer_lab.device.gpu_spec import GPU_SPECS, GpuSpec
from xinfer_lab.device.host_copy import copy_bytes
from xinfer_lab.device.records import (
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
    View,
    Wait,
)
from xinfer_lab.device.schedules import Step, open_schedule
from xinfer_lab.device.tensors import POISON, aligned_bytes, digest_of, slice_span, slice_view
from xinfer_lab.device.timeline import Timeline
from xinfer_lab.device.virtual_clock import VirtualClock

__all__ = ["EmulatedDevice"]

_MOST_VIEWS = 4096


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    # Another thread count means another summation order; the same bytes need the same number of threads.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@dataclass(frozen=True, slots=True)
class _Pending:
    step: Step
    act: Callable[[], object]
    fence: str = ""
    value: int = 0


class EmulatedDevice(Device):
    """A deterministic device on the CPU, with a virtual clock of a GPU with the figures of ``spec``.

    Queue commands do nothing until the host waits for a fence; then ``schedule`` ("timed", "copies_first",
    "copies_last", "random(SEED)") picks one of the orders that the fences allow, and only as much runs as that wait
    needs. Kernels run on one thread, so that results depend on nothing but the bytes. ``poison`` (default: as
    ``check``) fills memory as check mode does, whether or not commands are looked at. Other arguments: see `Device`.
    """

    torch_device = torch.device("cpu")

    def __init__(
        self,
        *,
        spec: GpuSpec = GPU_SPECS["laptop"],
        schedule: str = "timed",
        poison: bool | None = None,
        **options: Any,
    ) -> None:
        self.name = f"emulated {spec.name}"
        self.spec, self.schedule = spec, schedule
        self._schedule = open_schedule(schedule)
        self._memory: dict[str, torch.Tensor] = {}
        self._views: dict[tuple[object, ...], torch.Tensor] = {}
        self._pending: dict[str, deque[_Pending]] = {}
        self._fences: dict[str, int] = {}
        self._taken: dict[int, None] = {}
        self.peers = spec.peer_bandwidth > 0
        super().__init__(**options)
        self.poison = self.check if poison is None else poison
        self._clock = VirtualClock(spec, self.kernels)

    def _add_queue(self, name: str) -> None:
        self._pending[name] = deque()

    def _perform(self, index: int, record: Record) -> tuple[torch.Tensor, Record] | None:
        # The host's own work first: if it fails, the clock has not moved.
        seen = self._perform_on_host(record)
        start, end = self._clock.observe(record)
        match record:
            case Copy():
                dst, src = slice_span(self._memory, record.dst), slice_span(self._memory, record.src)
                if self.poison:
                    self._defer(record, index, start, lambda: dst.fill_(POISON))
                self._defer(record, index, end, lambda: dst.copy_(src), is_end=True)
            case Dispatch():
                self._defer(record, index, start, self._kernel_call(record))
            case Signal():
                fence, value = record.fence, record.value
                self._defer(record, index, start, lambda: self._fences.__setitem__(fence, value))
            case Wait():
                self._defer(record, index, end, lambda: None, record.fence, record.value)
        return seen

    def _perform_on_host(self, record: Record) -> tuple[torch.Tensor, Record] | None:
        match record:
            case Allocate():
                self._memory[record.buffer] = self._allocate(record)
                self._views.clear()
            case Free():
                memory = self._memory.pop(record.buffer)
                self._views.clear()
                if self.poison and not self.rules.buffers[record.buffer].mapped:
                    memory.fill_(POISON)
            case HostWrite():
                copy_bytes(slice_span(self._memory, record.dst), self.sources.read(record.source))
            case HostRead():
                raw = slice_span(self._memory, record.src).clone()
                return raw, dataclasses.replace(record, digest=digest_of(raw))
            case HostWait():
                self._run_until(record.fence, record.value)
        return None

    def _allocate(self, record: Allocate) -> torch.Tensor:
        if record.mapped:
            return self.sources.read(Source(record.mapped, 0, record.size))
        try:
            memory = aligned_bytes(record.size)
        except (RuntimeError, MemoryError):
            held = sum(memory.numel() for memory in self._memory.values())
            raise OutOfHostMemory(
                f"{record.buffer!r} needs {format_bytes(record.size)} of this machine's memory, which has no room "
                "for them beside "
                f"the {format_bytes(held)} of other buffers; a simulation (SimulatedDevice) needs none"
            ) from None
        return memory.fill_(POISON) if self.poison else memory

    def _kernel_call(self, record: Dispatch) -> Callable[[], None]:
        kernel = self.kernels[record.kernel]
        tensors = {name: self._tensor(view) for name, view in record.operands.items()}

        def run() -> None:
            try:
                kernel.run(tensors, record.params)
            except Exception as error:
                error.add_note(
                    f"It ran just now, but was dispatched to the {record.queue} queue at {record.where or '?'}."
                )
                raise

        return run

    def _tensor(self, view: View) -> torch.Tensor:
        # A program uses the same slots again and again; making a view takes longer than finding it.
        key = (view.buffer, view.offset, view.dtype, *view.shape)
        tensor = self._views.get(key)
        if tensor is None:
            if len(self._views) >= _MOST_VIEWS:
                self._views.clear()
            tensor = self._views[key] = slice_view(self._memory, view)
        return tensor.detach()  # a tensor of its own over the same bytes: a kernel may give its own another shape

    def _defer(
        self,
        record: Copy | Dispatch | Signal | Wait,
        index: int,
        time: float,
        act: Callable[[], object],
        fence: str = "",
        value: int = 0,
        *,
        is_end: bool = False,
    ) -> None:
        step = Step(record.queue, self.queues[record.queue].kind, is_end, index, time)
        self._pending[record.queue].append(_Pending(step, act, fence, value))

    def _run_until(self, fence: str, value: int) -> None:
        with _one_thread(), torch.inference_mode():
            while self._fences.get(fence, 0) < value:
                heads = [pending[0] for pending in self._pending.values() if pending]
                ready = [head for head in heads if self._fences.get(head.fence, 0) >= head.value]
                # Every wait names a value that was submitted before it, so something can always go on.
                choice = ready[self._schedule.pick([head.step for head in ready])]
                self._pending[choice.step.queue].popleft()
                choice.act()
                # The end of a copy comes after its beginning, and is what counts.
                self._taken.pop(choice.step.index, None)
                self._taken[choice.step.index] = None

    def _release_all(self) -> None:
        self._memory.clear()
        self._views.clear()
        for pending in self._pending.values():
            pending.clear()

    def timeline(self) -> Timeline:
        """The stream so far on the virtual clock."""
        return self._clock.timeline(tuple(self.queues))

    @property
    def order(self) -> tuple[int, ...]:
        """The queues' records so far, by number, in the order in which ``schedule`` had them done."""
        return tuple(self._taken)
