"""`Device`: what every device has in common. It turns calls into records, admits, checks and keeps them, then performs them."""

from __future__ import annotations

import abc
import dataclasses
import functools
import os
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TypeVar

import torch

from xinfer_lab.device.buffers import Buffer, ReadbackHeap, UploadHeap
from xinfer_lab.device.checker import Findings, StreamChecker
from xinfer_lab.device.errors import HazardError, StreamError
from xinfer_lab.device.fence import Fence
from xinfer_lab.device.hazards import Hazard
from xinfer_lab.device.kernels import Access, Cost, Kernel, KernelTable, Operands
from xinfer_lab.device.memory import MemoryBudget
from xinfer_lab.device.queue import CommandList, CommandQueue
from xinfer_lab.device.records import Allocate, AssumeCommon, Dispatch, Free, Record, View
from xinfer_lab.device.rules import StreamRules
from xinfer_lab.device.sources import Sources
from xinfer_lab.device.state_faults import StateFault
from xinfer_lab.device.states import StateTracker
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.device.timeline import Timeline

__all__ = ["KERNELS", "Device"]

KERNELS = KernelTable()
"""The kernels that every device knows. Packages register theirs here when imported."""

_B = TypeVar("_B", bound=Buffer)
_HERE = os.path.dirname(os.path.abspath(__file__))


@functools.cache
def _is_internal(filename: str) -> bool:
    return os.path.dirname(os.path.abspath(filename)) == _HERE


class Device(abc.ABC):
    """A GPU, real or emulated: a direct queue, a copy queue, memory with a budget, and the stream of all that was asked.

    ``memory``: device memory budget in bytes (None: unlimited). ``check``: look at each command as it is submitted, for
    hazards and state faults (collected in `hazards` and `state_faults`), and fill memory with 0xFF bytes (NaN in every
    float type) at allocation and whenever a copy into it starts. ``on_hazard="raise"`` raises `HazardError` instead, before
    the command that would race is performed.
    """

    name: str
    torch_device: torch.device

    def __init__(
        self,
        *,
        memory: int | None = None,
        check: bool = True,
        on_hazard: str = "collect",
        kernels: KernelTable | None = None,
    ) -> None:
        if on_hazard not in ("collect", "raise"):
            raise ValueError(f"on_hazard is 'collect' or 'raise', not {on_hazard!r}")
        self.check, self.on_hazard = check, on_hazard
        self.kernels = KernelTable(KERNELS if kernels is None else kernels)
        self.memory = MemoryBudget(memory)
        self.sources = Sources()
        self.stream = CommandStream()
        self.stream.inputs = self.sources.inputs
        self.tracker = StateTracker()
        self.hazards: list[Hazard] = []
        self.state_faults: list[StateFault] = []
        self.rules = StreamRules(self.kernels)
        self._checker = StreamChecker(self.kernels)
        self._lists: list[CommandList] = []
        self._calls = 0
        self._names: dict[str, int] = {}
        self.queues: dict[str, CommandQueue] = {}
        self.direct_queue = self.create_queue("direct", "direct")
        self.copy_queue = self.create_queue("copy", "copy")

    # What a program creates

    def create_queue(self, name: str, kind: str = "copy") -> CommandQueue:
        """A further queue; ``kind`` is "direct" (computes and copies) or "copy"."""
        if name in self.queues:
            raise StreamError(f"there is a queue {name!r} already")
        self.queues[name] = CommandQueue(self, name, kind)
        self.rules.queues.add(name)
        self._add_queue(name)
        return self.queues[name]

    def create_fence(self, name: str | None = None) -> Fence:
        """A fence at 0."""
        return Fence(self, name or self.fresh_name("fence"))

    def create_buffer(self, size: int, name: str | None = None) -> Buffer:
        """``size`` bytes of device memory. Raises `OutOfDeviceMemory` when the budget does not allow it."""
        return self._create(Buffer, size, name)

    def create_upload_heap(self, size: int, name: str | None = None) -> UploadHeap:
        """``size`` bytes of pinned, persistently mapped host memory that the host writes and queues copy from."""
        return self._create(UploadHeap, size, name)

    def create_readback_heap(self, size: int, name: str | None = None) -> ReadbackHeap:
        """``size`` bytes of pinned host memory that queues copy into and the host reads."""
        return self._create(ReadbackHeap, size, name)

    def _create(self, kind: type[_B], size: int, name: str | None) -> _B:
        handle = kind(self, name or self.fresh_name(kind.heap), size)
        self.submit(Allocate(buffer=handle.name, size=size, heap=kind.heap, where=self.caller()))
        return handle

    def fresh_name(self, stem: str) -> str:
        """``stem.1``, ``stem.2``, ...: the same names in the same program on every device."""
        self._names[stem] = self._names.get(stem, 0) + 1
        return f"{stem}.{self._names[stem]}"

    def heap_of(self, buffer: str) -> str:
        """The heap of a living buffer."""
        allocation = self.rules.buffers.get(buffer)
        return allocation.heap if allocation else "default"

    # The one way in

    def submit(self, record: Record) -> torch.Tensor | None:
        """Admit ``record``, account for it, check it, append it to the stream, perform it.

        Raises a `DeviceError` if it is not admissible, with nothing performed. Returns the bytes that a host read saw.
        """
        if isinstance(record, Allocate) and record.heap == "default":
            self.memory.check(record.buffer, record.size)
        self.rules.admit(record)
        self._account(record)
        if self.check:
            self._inspect(record)
        index = self.stream.append(record)
        result = self._perform(index, record)
        if result is not None:
            raw, record = result
            self.stream.records[index] = record
            return raw
        return None

    def _account(self, record: Record) -> None:
        if isinstance(record, Allocate):
            if record.heap == "default":
                self.memory.take(record.buffer, record.size)
            self.tracker.allocate(record.buffer, record.heap)
        elif isinstance(record, Free):
            self.memory.give_back(record.buffer)
            self.tracker.free(record.buffer)
        elif isinstance(record, Dispatch):
            self.memory.reserve_workspace(self.kernels[record.kernel].workspace(record.operands, record.params))
        self._calls = max(self._calls, getattr(record, "call", 0))

    def _inspect(self, record: Record) -> None:
        found = self._checker.observe(record)
        self.hazards.extend(found.hazards)
        self.state_faults.extend(found.state_faults)
        if found and self.on_hazard == "raise":
            raise HazardError(found.report())

    def raise_hazards(self) -> None:
        """Raise `HazardError` with the full reports if any hazard or state fault was found so far."""
        found = Findings(tuple(self.hazards), tuple(self.state_faults))
        if found:
            raise HazardError(found.report())

    # Command lists and bookkeeping

    def next_call(self) -> int:
        """The number of the next ExecuteCommandLists call."""
        self._calls += 1
        return self._calls

    def open_list(self, commands: CommandList) -> None:
        """A command list begins to record. One at a time: lists execute in the order in which they are closed."""
        if self._lists:
            raise RuntimeError(
                f"a command list of the {self._lists[-1].queue.name} queue is still open: end its `with` block first"
            )
        self._lists.append(commands)
        self.tracker.begin_call(commands.queue.name)

    def close_list(self, commands: CommandList, *, abandon: bool) -> None:
        """A command list ends: submit what it holds as one call, or nothing if it is abandoned."""
        self._lists.remove(commands)
        self.tracker.end_call(commands.queue.name)
        if abandon or not commands.records:
            return
        call = self.next_call()
        for record in commands.records:
            self.submit(dataclasses.replace(record, call=call) if hasattr(record, "call") else record)

    def record_bookkeeping(self, record: AssumeCommon) -> None:
        """Note what the program takes for granted; inside an open command list it keeps its place among the commands."""
        self.tracker.assume_common(record.buffer)
        if self._lists:
            self._lists[-1].records.append(record)
        else:
            self.submit(record)

    def adopt_closure(
        self, function: Callable[..., None], reads: Sequence[View], writes: Sequence[View]
    ) -> tuple[str, dict[str, View]]:
        """Register ``function`` as a kernel of this device alone; returns its name and operands."""
        operands = {f"read{i}": view for i, view in enumerate(reads)}
        operands |= {f"write{i}": view for i, view in enumerate(writes)}
        name = self.fresh_name(f"closure {getattr(function, '__name__', 'function')}")

        def access(views: Operands, _: object) -> Access:
            return Access(
                tuple(view.span for key, view in views.items() if key.startswith("read")),
                tuple(view.span for key, view in views.items() if key.startswith("write")),
            )

        kernel = Kernel(
            name=name,
            run=lambda tensors, _: function(*tensors.values()),
            access=access,
            cost=lambda views, _: Cost(0.0, float(sum(view.nbytes for view in views.values()))),
            workspace=lambda _, __: 0,
            check=lambda _, __: None,
        )
        self.kernels.register(kernel)
        return name, operands

    def caller(self) -> str:
        """``file:line`` of the innermost frame outside of the device package: who asked for this."""
        frame = sys._getframe(1)
        while frame.f_back is not None and _is_internal(frame.f_code.co_filename):
            frame = frame.f_back
        return f"{frame.f_code.co_filename}:{frame.f_lineno}"

    def wait_idle(self) -> None:
        """The host waits for everything submitted so far, one queue after the other (signals and host waits, recorded)."""
        for name, queue in self.queues.items():
            fence = Fence(self, f"idle {name}")
            queue.signal(fence, fence.last_submitted + 1)
            fence.wait(fence.last_submitted)

    def close(self) -> None:
        """Wait for everything and let go of all memory. The stream, hazards and timeline stay readable."""
        self.wait_idle()
        self._release_all()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self._release_all()

    # What a kind of device does

    @abc.abstractmethod
    def _add_queue(self, name: str) -> None:
        """Prepare for commands on the new queue ``name``."""

    @abc.abstractmethod
    def _perform(self, index: int, record: Record) -> tuple[torch.Tensor, Record] | None:
        """Carry out ``record``. For a host read: its bytes, and the record with their digest."""

    @abc.abstractmethod
    def _release_all(self) -> None:
        """Free all memory."""

    @abc.abstractmethod
    def timeline(self) -> Timeline:
        """When everything happened so far."""
