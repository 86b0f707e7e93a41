"""`HostDevice`: queues are threads, the link is the disk, and device memory is a budget of this machine's RAM.

The virtual clock tells what a GPU would gain from copying ahead. This device shows it without a GPU, measured: a copy
out of a mapped file is a read from the disk, which takes time while the processor computes. Queues, fences, budget,
command stream and checkers are those of every device, and kernels run on one thread, so bytes equal the emulated
device's.

Threads suffice: reads and torch's kernels let go of the interpreter's lock.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.direct_file import DirectFile
from xinfer_lab.device.errors import DeviceError
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
    Source,
    Wait,
)
from xinfer_lab.device.tensors import POISON, aligned_bytes, digest_of, slice_span, slice_view
from xinfer_lab.device.timeline import Flow, MemorySample, Timeline, TimelineEvent
from xinfer_lab.device.virtual_clock import label_of

__all__ = ["HostDevice"]


class _Fences:
    """What fences have reached and when, with one condition for all who wait."""

    def __init__(self) -> None:
        self._moved = threading.Condition()
        self._reached: dict[str, list[tuple[int, float]]] = {}
        self._failure: BaseException | None = None

    def signal(self, fence: str, value: int) -> None:
        with self._moved:
            self._reached.setdefault(fence, []).append((value, time.perf_counter()))
            self._moved.notify_all()

    def wait(self, fence: str, value: int) -> None:
        """Block until ``fence`` is at ``value``. Raises what broke a queue: the value may never come then."""
        with self._moved:
            self._moved.wait_for(lambda: self._failure is not None or self._at(fence) >= value)
            if self._at(fence) < value and self._failure is not None:
                raise self._failure

    def when(self, fence: str, value: int) -> float:
        """The moment at which ``fence`` reached ``value``."""
        with self._moved:
            return next(moment for reached, moment in self._reached[fence] if reached >= value)

    def fail(self, error: BaseException) -> None:
        with self._moved:
            self._failure = self._failure or error
            self._moved.notify_all()

    def _at(self, fence: str) -> int:
        reached = self._reached.get(fence)
        return reached[-1][0] if reached else 0


class _Lane:
    """A queue's thread: it does what it is given, in order."""

    def __init__(self, name: str, fences: _Fences) -> None:
        self._fences = fences
        self._todo: deque[Callable[[], None] | None] = deque()
        self._given = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, name=f"xinfer-lab {name} queue", daemon=True)
        self._thread.start()

    def give(self, work: Callable[[], None]) -> None:
        self._todo.append(work)
        self._given.release()

    def end(self) -> None:
        """Let the thread end once it has done what it was given, and wait for that."""
        self._todo.append(None)
        self._given.release()
        self._thread.join()

    def _run(self) -> None:
        # Another number of threads means another order of summation: equal bytes need one.
        torch.set_num_threads(1)
        with torch.inference_mode():
            while True:
                self._given.acquire()
                if (work := self._todo.popleft()) is None:
                    return
                try:
                    work()
                except BaseException as error:
                    self._fences.fail(error)
                    return


class HostDevice(Device):
    """A device of threads. ``memory``: bytes of RAM that default-heap buffers may take together (None: unlimited).

    Upload heaps are RAM, except mapped ones: a copy out of a mapped checkpoint file reads the disk, past the file cache
    where the system allows it (`link` says what it does). Every command is timed: see `timeline`. ``check`` defaults to
    False, since looking at commands and filling memory costs time that would be measured too.

    A kernel or copy that raises ends its queue. The next host wait for anything that can no longer come raises that
    error, with the line that submitted it. Other arguments: see `Device`.
    """

    name = "this machine"
    torch_device = torch.device("cpu")
    copies_from_files = True

    def __init__(self, **options: Any) -> None:
        self._memory: dict[str, torch.Tensor] = {}
        self._files: dict[str, DirectFile] = {}
        self._link = ""
        self._fences = _Fences()
        self._lanes: dict[str, _Lane] = {}
        self._events: list[TimelineEvent] = []
        self._flows: list[tuple[int, Wait, float]] = []
        self._origin = time.perf_counter()
        super().__init__(**{"check": False, **options})

    @property
    def link(self) -> str:
        """How copies out of mapped files are read, in words; '' before a file was mapped."""
        return self._link

    def _add_queue(self, name: str) -> None:
        self._lanes[name] = _Lane(name, self._fences)

    def _perform(self, index: int, record: Record) -> tuple[torch.Tensor, Record] | None:
        match record:
            case Copy() | Dispatch():
                work = self._copy(record) if isinstance(record, Copy) else self._kernel(record)
                self._lanes[record.queue].give(lambda: self._timed(index, record, work))
            case Signal():
                fence, value = record.fence, record.value
                self._lanes[record.queue].give(lambda: self._fences.signal(fence, value))
            case Wait():
                self._lanes[record.queue].give(lambda: self._stand_still(index, record))
            case Allocate():
                self._allocate(record)
            case Free():
                self._memory.pop(record.buffer, None)
                if (file := self._files.pop(record.buffer, None)) is not None:
                    file.close()
            case HostWrite():
                slice_span(self._memory, record.dst).copy_(self.sources.read(record.source))
            case HostRead():
                raw = slice_span(self._memory, record.src).clone()
                return raw, dataclasses.replace(record, digest=digest_of(raw) if self.check else "")
            case HostWait():
                self._fences.wait(record.fence, record.value)
        return None

    def _allocate(self, record: Allocate) -> None:
        path = self.sources.file_of(record.mapped) if record.mapped else None
        if path is not None:
            file = self._files[record.buffer] = DirectFile(path)
            self._link = file.how
        elif record.mapped:
            self._memory[record.buffer] = self.sources.read(Source(record.mapped, 0, record.size))
        else:
            memory = aligned_bytes(record.size)
            # Touched now: the first use of fresh memory would be measured as computing.
            self._memory[record.buffer] = memory.fill_(POISON if self.check else 0)

    def _copy(self, record: Copy) -> Callable[[], None]:
        dst, file = slice_span(self._memory, record.dst), self._files.get(record.src.buffer)
        if file is not None:
            offset = record.src.offset
            return lambda: file.read_into(dst, offset)
        src = slice_span(self._memory, record.src)
        return lambda: self._move(dst, src)

    def _move(self, dst: torch.Tensor, src: torch.Tensor) -> None:
        if self.check:
            dst.fill_(POISON)
        dst.copy_(src)

    def _kernel(self, record: Dispatch) -> Callable[[], None]:
        kernel, params = self.kernels[record.kernel], record.params
        tensors = {name: slice_view(self._memory, view) for name, view in record.operands.items()}
        return lambda: kernel.run(tensors, params)

    def _timed(self, index: int, record: Copy | Dispatch, work: Callable[[], None]) -> None:
        start = time.perf_counter()
        try:
            work()
        except Exception as error:
            what = f"The {record.queue} queue had been asked for this at {record.where or '?'}."
            error.add_note(what)
            raise
        self._event(index, record, "copy" if isinstance(record, Copy) else "dispatch", start)

    def _stand_still(self, index: int, record: Wait) -> None:
        start = time.perf_counter()
        self._fences.wait(record.fence, record.value)
        self._flows.append((index, record, time.perf_counter() - self._origin))
        self._event(index, record, "wait", start)

    def _event(self, index: int, record: Copy | Dispatch | Wait, kind: str, start: float) -> None:
        end = time.perf_counter()
        begin = start - self._origin
        self._events.append(TimelineEvent(index, record.queue, kind, label_of(record), begin, end - self._origin))

    def _release_all(self) -> None:
        self._fences.fail(DeviceError("the device was closed"))
        for lane in self._lanes.values():
            lane.end()
        self._memory.clear()
        for file in self._files.values():
            file.close()
        self._files.clear()

    def timeline(self) -> Timeline:
        """Copies, dispatches and waits as they were timed on this machine, those that are over; the memory is the
        budget's peak."""
        signals: dict[str, list[tuple[int, int, str]]] = {}
        for index, record in enumerate(self.stream):
            if isinstance(record, Signal):
                signals.setdefault(record.fence, []).append((record.value, index, record.queue))
        flows = []
        for index, wait, moment in sorted(self._flows, key=lambda flow: flow[0]):
            if wait.value <= 0:
                continue
            value, signal, lane = next(found for found in signals[wait.fence] if found[0] >= wait.value)
            reached = self._fences.when(wait.fence, value) - self._origin
            flows.append(Flow(wait.fence, wait.value, signal, reached, lane, index, moment, wait.queue))
        return Timeline(
            lanes=(*self.queues, HOST),
            events=tuple(sorted(self._events, key=lambda event: event.record)),
            flows=tuple(flows),
            memory=(MemorySample(0.0, self.memory.use().peak),),
            clock=self.name,
        )
