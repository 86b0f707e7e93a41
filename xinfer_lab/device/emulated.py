"""`EmulatedDevice`: a GPU without a GPU. Commands are deferred until the host waits, then run in an order that fences allow."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from xinfer_lab.device.clock import VirtualClock
from xinfer_lab.device.device import Device
from xinfer_lab.device.gpu_spec import GPU_SPECS, GpuSpec
from xinfer_lab.device.records import (
    HOST,
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
from xinfer_lab.device.schedules import Step, open_schedule
from xinfer_lab.device.tensors import POISON, aligned_bytes, digest_of, slice_span, slice_view
from xinfer_lab.device.timeline import Timeline

__all__ = ["EmulatedDevice"]


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
    act: Callable[[], None]
    fence: str = ""
    value: int = 0


class EmulatedDevice(Device):
    """A deterministic device on the CPU, with a virtual clock of a GPU with the figures of ``spec``.

    Queue commands do nothing until the host waits for a fence; then ``schedule`` ("timed", "copies_first", "copies_last",
    "random(SEED)") picks one of the orders that the fences allow, and only as much runs as that wait needs. Kernels run on
    one thread, so that results depend on nothing but the bytes. Other arguments: see `Device`.
    """

    torch_device = torch.device("cpu")

    def __init__(self, *, spec: GpuSpec = GPU_SPECS["laptop"], schedule: str = "timed", **options: Any) -> None:
        self.name = f"emulated {spec.name}"
        self.spec, self.schedule = spec, schedule
        self._schedule = open_schedule(schedule)
        self._memory: dict[str, torch.Tensor] = {}
        self._pending: dict[str, deque[_Pending]] = {}
        self._fences: dict[str, int] = {}
        super().__init__(**options)
        self._clock = VirtualClock(spec, self.kernels)

    def _add_queue(self, name: str) -> None:
        self._pending[name] = deque()

    def _perform(self, index: int, record: Record) -> tuple[torch.Tensor, Record] | None:
        start, end = self._clock.observe(record)
        match record:
            case Allocate():
                self._memory[record.buffer] = memory = aligned_bytes(record.size)
                if self.check:
                    memory.fill_(POISON)
            case Free():
                memory = self._memory.pop(record.buffer)
                if self.check:
                    memory.fill_(POISON)
            case HostWrite():
                slice_span(self._memory, record.dst).copy_(self.sources.read(record.source))
            case HostRead():
                raw = slice_span(self._memory, record.src).clone()
                return raw, dataclasses.replace(record, digest=digest_of(raw))
            case HostWait():
                self._run_until(record.fence, record.value)
            case Copy():
                dst, src = slice_span(self._memory, record.dst), slice_span(self._memory, record.src)
                if self.check:
                    self._defer(record.queue, index, start, lambda: dst.fill_(POISON))
                self._defer(record.queue, index, end, lambda: dst.copy_(src), is_end=True)
            case Dispatch():
                self._defer(record.queue, index, start, self._kernel_call(record))
            case Signal():
                fence, value = record.fence, record.value
                self._defer(record.queue, index, start, lambda: self._fences.__setitem__(fence, value))
            case Wait():
                step = self._step(record.queue, index, end, False)
                self._pending[record.queue].append(_Pending(step, lambda: None, record.fence, record.value))
        return None

    def _kernel_call(self, record: Dispatch) -> Callable[[], None]:
        kernel = self.kernels[record.kernel]
        tensors = {name: slice_view(self._memory, view) for name, view in record.operands.items()}
        return lambda: kernel.run(tensors, record.params)

    def _step(self, queue: str, index: int, time: float, is_end: bool) -> Step:
        return Step(queue, self.queues[queue].kind, is_end, index, time)

    def _defer(self, queue: str, index: int, time: float, act: Callable[[], object], *, is_end: bool = False) -> None:
        def run() -> None:
            act()

        self._pending[queue].append(_Pending(self._step(queue, index, time, is_end), run))

    def _run_until(self, fence: str, value: int) -> None:
        with _one_thread(), torch.inference_mode():
            while self._fences.get(fence, 0) < value:
                heads = [pending[0] for pending in self._pending.values() if pending]
                ready = [head for head in heads if self._fences.get(head.fence, 0) >= head.value]
                # Every wait names a value that was submitted before it, so something can always go on.
                choice = ready[self._schedule.pick([head.step for head in ready])]
                self._pending[choice.step.queue].popleft()
                choice.act()

    def _release_all(self) -> None:
        self._memory.clear()
        for pending in self._pending.values():
            pending.clear()

    def timeline(self) -> Timeline:
        """The stream so far on the virtual clock."""
        return self._clock.timeline(tuple(self.queues))


