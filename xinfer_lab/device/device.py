"""`Device`: what every device has in common. It turns calls into records, admits, checks, performs and keeps them."""

from __future__ import annotations

import abc
import mmap
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TypeVar

import torch

from xinfer_lab.device.admission import Admission
from xinfer_lab.device.arguments import plain_name
from xinfer_lab.device.buffers import Buffer, HostHeap, MappedHeap, ReadbackHeap, UploadHeap
from xinfer_lab.device.caller import caller
from xinfer_lab.device.checker import Findings, StreamChecker, check_stream
from xinfer_lab.device.errors import DeviceClosed, HazardError, StreamError
from xinfer_lab.device.fence import Fence
from xinfer_lab.device.hazard import Hazard
from xinfer_lab.device.kernels import Access, KernelTable
from xinfer_lab.device.memory import MemoryBudget
from xinfer_lab.device.node import WRITE_BACK, Node
from xinfer_lab.device.node_names import on_node
from xinfer_lab.device.queue import CommandList, CommandQueue, KeptCall
from xinfer_lab.device.records import (
    HOST,
    Allocate,
    AssumeCommon,
    Copy,
    Dispatch,
    Free,
    Record,
    Scalar,
    Span,
    Transition,
    again,
    with_call,
)
from xinfer_lab.device.sources import Sources
from xinfer_lab.device.state_faults import StateFault
from xinfer_lab.device.states import StateTracker
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.device.timeline import Timeline

__all__ = ["KERNELS", "WRITE_BACK", "Device"]

KERNELS = KernelTable()
"""The kernels that every device knows. Packages register theirs here when imported."""

_B = TypeVar("_B", bound=Buffer)
_NO_FINDINGS = Findings()
_NOTHING: Mapping[str, Scalar] = {}


def _spans(access: Access) -> Iterator[Span]:
    yield from access.reads
    yield from access.writes


def _idle_fence(queue: str) -> str:
    return f"idle {queue}"


class Device(abc.ABC):
    """A GPU, real or emulated: a direct queue, a copy queue, memory with a budget, and the stream of all requests.

    ``nodes``: how many cards. ``memory``: device memory budget of each in bytes (None: unlimited). ``check``: look at
    each command as it is submitted, for hazards and state faults (collected in `hazards` and `state_faults`), and fill
    memory with 0xFF bytes (NaN in every float type) at allocation and whenever a copy into it starts.
    ``on_hazard="raise"`` raises `HazardError` instead, before the command that would race is performed.
    """

    name: str
    torch_device: torch.device
    computes = True
    """Whether the host reads what was computed; False where there are sizes only."""
    peers = False
    """Whether cards copy to each other without the host."""
    copies_from_files = False
    """Whether copies straight out of a mapped file are what this device is for."""

    def __init__(
        self,
        *,
        memory: int | None = None,
        check: bool = True,
        on_hazard: str = "collect",
        kernels: KernelTable | None = None,
        nodes: int = 1,
    ) -> None:
        if on_hazard not in ("collect", "raise"):
            raise ValueError(f"on_hazard is 'collect' or 'raise', not {on_hazard!r}")
        self.check, self.on_hazard = check, on_hazard
        self.kernels = KernelTable(KERNELS if kernels is None else kernels)
        if nodes < 1:
            raise ValueError(f"a device has at least one node, not {nodes}")
        self.memories = [MemoryBudget(memory) for _ in range(nodes)]
        self.memory = self.memories[0]
        self.sources = Sources()
        self.stream = CommandStream()
        self.stream.inputs = self.sources.inputs
        self.tracker = StateTracker()
        self.hazards: list[Hazard] = []
        self.state_faults: list[StateFault] = []
        self._admission = Admission(self.kernels, self.memories, self.sources)
        self.rules = self._admission.rules
        self._checker = StreamChecker(self.kernels)
        self._list: CommandList | None = None
        self._calls = 0
        self._closed = False
        self._fence_names: set[str] = set()
        self._names: dict[str, int] = {}
        self.queues: dict[str, CommandQueue] = {}
        self.direct_queue = self.create_queue("direct", "direct")
        self.copy_queue = self.create_queue("copy", "copy")
        for node in range(1, nodes):
            self.create_queue(on_node("direct", node), "direct")
            self.create_queue(on_node("copy", node), "copy")
        self.nodes = tuple(Node(self, node) for node in range(nodes))

    # What a program creates

    def create_queue(self, name: str, kind: str = "copy") -> CommandQueue:
        """A further queue; ``kind`` is "direct" (computes and copies) or "copy"."""
        if plain_name(name, "a queue") in self.queues or name == HOST:
            raise StreamError(
                f"a queue cannot be called {name!r}: that is the {name} {'queue' if name != HOST else 'itself'}"
            )
        if kind not in ("direct", "copy"):
            raise ValueError(f"a queue's kind is 'direct' or 'copy', not {kind!r}")
        self._require_open()
        self.queues[name] = CommandQueue(self, name, kind)
        self.rules.queues.add(name)
        self._fence_names.add(_idle_fence(name))
        self._add_queue(name)
        return self.queues[name]

    @property
    def write_back_queue(self) -> CommandQueue:
        """A copy queue for copies to the host, made when first asked for: a link carries both directions at once."""
        return self.nodes[0].write_back_queue

    def create_fence(self, name: str | None = None) -> Fence:
        """A fence at 0. Raises `StreamError` if one of that name was created before: the two would be one counter."""
        name = plain_name(name, "a fence") if name is not None else self.fresh_name("fence")
        if name in self._fence_names:
            raise StreamError(f"there is a fence {name!r} already; fence names are not used again")
        self._fence_names.add(name)
        return Fence(self, name)

    def create_buffer(self, size: int, name: str | None = None, *, node: int = 0) -> Buffer:
        """``size`` bytes of device memory. Raises `OutOfDeviceMemory` when the budget does not allow it."""
        return self._create(Buffer, size, name, node=node)

    def create_upload_heap(self, size: int, name: str | None = None) -> UploadHeap:
        """``size`` bytes of pinned, persistently mapped host memory that the host writes and queues copy from."""
        return self._create(UploadHeap, size, name)

    def create_readback_heap(self, size: int, name: str | None = None) -> ReadbackHeap:
        """``size`` bytes of pinned host memory that queues copy into and the host reads."""
        return self._create(ReadbackHeap, size, name)

    def create_host_heap(self, size: int, name: str | None = None) -> HostHeap:
        """``size`` bytes of pinned host memory that both the host and queues read and write."""
        return self._create(HostHeap, size, name)

    def map_upload_heap(self, source: str, name: str | None = None) -> MappedHeap:
        """An upload heap that is the bytes of ``source`` themselves: queues copy from where they are.

        On a GPU they must be a file, mapped shared and read-only, that CUDA can pin as it is. Raises `StreamError` if
        there is no such source, `CudaUnavailable` where it cannot be mapped; `map_refusal` says so before.
        """
        return self._create(MappedHeap, self.sources.whole(source).size, name, source)

    def map_refusal(self, source: str) -> str:
        """Why `map_upload_heap` cannot map ``source`` here, as the end of a sentence; '' if it can."""
        self.sources.whole(source)
        return ""

    @property
    def pinned_bytes(self) -> int:
        """Bytes of host memory that are pinned, or would be on a GPU: whole pages of each heap, mapped ones too."""
        sizes = (held.size for held in self.rules.buffers.values() if held.heap != "default")
        return sum(-(-size // mmap.PAGESIZE) * mmap.PAGESIZE for size in sizes)

    def _create(self, kind: type[_B], size: int, name: str | None, mapped: str = "", *, node: int = 0) -> _B:
        handle = kind(self, name if name is not None else self.fresh_name(kind.heap), size)
        self.submit(
            Allocate(buffer=handle.name, size=handle.size, heap=kind.heap, mapped=mapped, node=node, where=caller()),
        )
        return handle

    def fresh_name(self, stem: str) -> str:
        """``stem.1``, ``stem.2``, ...: the same names in the same program on every device, and none that is in use."""
        while True:
            number = self._names[stem] = self._names.get(stem, 0) + 1
            name = f"{stem}.{number}"
            if name not in self.rules.buffers and name not in self._fence_names and name not in self.sources.inputs:
                return name

    def heap_of(self, buffer: str) -> str:
        """The heap of a living buffer."""
        allocation = self.rules.buffers.get(buffer)
        return allocation.heap if allocation else "default"

    # The one way in

    def submit(self, *records: Record) -> torch.Tensor | None:
        """Admit ``records``, check them, then perform each and append it to the stream. Several are one call.

        Raises a `DeviceError` if one of them is not admissible, or would race where ``on_hazard`` is "raise": then none
        was performed, nothing is counted, and the device goes on as if nothing had been asked. Returns the bytes that a
        host read saw.
        """
        self._require_open()
        return self._take(records, [self._admission.check(record) for record in records])

    def _take(
        self, records: Sequence[Record], needs: Sequence[int], kept: KeptCall | None = None
    ) -> torch.Tensor | None:
        """Check and perform ``records``, which were admitted and need so many bytes."""
        seen = None
        try:
            found = self._checker.observe(*records) if self.check else _NO_FINDINGS
            if found and self.on_hazard == "raise":
                raise HazardError(found.report())
            at_once = kept is not None and self._perform_call(len(self.stream), records, kept)
            for record, need in zip(records, needs, strict=True):
                result = None if at_once else self._perform(len(self.stream), record)
                self._note(record, need)
                if result is not None:
                    seen, record = result
                self.stream.append(record)
        except BaseException:
            # What the checker knows is a function of the stream, so it can always be worked out again.
            self._checker = StreamChecker(self.kernels)
            self._checker.observe(*(self.stream if self.check else ()))
            raise
        self.hazards.extend(found.hazards)
        self.state_faults.extend(found.state_faults)
        return seen

    def _note(self, record: Record, need: int) -> None:
        self._admission.note(record, need)
        if isinstance(record, (Copy, Dispatch, Transition)):
            self._calls = max(self._calls, record.call)
        elif isinstance(record, Allocate):
            self.tracker.allocate(record.buffer, record.heap, record.node)
        elif isinstance(record, Free):
            self.tracker.free(record.buffer)

    def findings(self) -> Findings:
        """Hazards and state faults of the stream so far; without ``check``, the whole stream is looked at now."""
        if self.check:
            return Findings(tuple(self.hazards), tuple(self.state_faults))
        return check_stream(self.stream, self.kernels)

    def raise_hazards(self) -> None:
        """Raise `HazardError` with the full reports if `findings` has any."""
        if found := self.findings():
            raise HazardError(found.report())

    # Command lists and bookkeeping

    def next_call(self) -> int:
        """The number of the next ExecuteCommandLists call."""
        self._calls += 1
        return self._calls

    def open_list(self, commands: CommandList) -> None:
        """A command list begins to record. One at a time: lists execute in the order in which they are closed."""
        self._require_open()
        if self._list is not None:
            raise RuntimeError(
                f"a command list of the {self._list.queue.name} queue is still open: end its `with` block first"
            )
        self._list = commands
        self.tracker.begin_call(commands.queue.name)

    def close_list(self, commands: CommandList, *, abandon: bool) -> None:
        """A command list ends: submit what it holds as one call, or nothing if it is abandoned or not admissible."""
        self._list, kept = None, None
        if not abandon and commands.records:
            call = self.next_call()
            records = tuple(with_call(record, call) for record in commands.records)
            kept = KeptCall(records) if commands.keep else None
            try:
                self._require_open()
                self._take(records, [self._admission.check(record) for record in records], kept)
            except BaseException:
                self.tracker.abandon_call()
                raise
        if abandon:
            self.tracker.abandon_call()
            return
        self.tracker.end_call(commands.queue.name)
        if kept is not None:
            kept.before, kept.after = self.tracker.last_call()
            touched = (span.buffer for record in kept.records for span in _spans(self.kernels.access(record)))
            kept.allocations = tuple(self.rules.buffers[name] for name in dict.fromkeys(touched))
            kept.frees = self.rules.frees
            kept.varying = tuple(self._varying(record) for record in kept.records)
            commands.kept = kept

    def may_repeat(self, kept: KeptCall) -> bool:
        """Whether ``kept`` may be executed again now: its buffers live, and their tracked states are as they were."""
        if kept.frees != self.rules.frees:
            living = self.rules.buffers
            if any(living.get(allocation.buffer) is not allocation for allocation in kept.allocations):
                return False
            kept.frees = self.rules.frees
        return self.tracker.are(kept.before)

    def execute_again(self, commands: CommandList, params: Mapping[str, Scalar]) -> None:
        """Execute a kept list once more, as one call; see `CommandQueue.execute`."""
        self._require_open()
        kept = commands.kept
        assert kept is not None
        call = self.next_call()
        for name in params:
            if not any(name in names for names in kept.varying):
                raise StreamError(f"no kernel of this command list lets {name!r} differ from execution to execution")
        records = [
            again(record, call, {name: params[name] for name in names if name in params} if names else _NOTHING)
            for record, names in zip(kept.records, kept.varying, strict=True)
        ]
        self._take(records, [self._admission.check_again(record) for record in records], kept)
        self.tracker.repeat_call(kept.after)

    def _varying(self, record: Record) -> tuple[str, ...]:
        """The parameters of ``record`` that may differ when it is executed again."""
        if not isinstance(record, Dispatch):
            return ()
        return tuple(sorted(self.kernels[record.kernel].varying & record.params.keys()))

    def record_bookkeeping(self, record: AssumeCommon) -> None:
        """Note what the program takes for granted; inside an open command list it keeps its place among commands."""
        if self._list is not None:
            self._list.append(record)
        else:
            self.submit(record)
        self.tracker.assume_common(record.buffer)

    def wait_idle(self) -> None:
        """The host waits for all that was submitted, one queue after the other, by signals and waits in the stream."""
        for name, queue in self.queues.items():
            fence = Fence(self, _idle_fence(name))
            queue.signal(fence, fence.last_submitted + 1)
            fence.wait(fence.last_submitted)

    def close(self) -> None:
        """Wait for everything and free all memory; a second call does nothing.

        The stream, hazards and timeline stay readable; every further command raises `DeviceClosed`.
        """
        if not self._closed:
            try:
                self.wait_idle()
            finally:
                self._shut()

    def _shut(self) -> None:
        if not self._closed:
            self._closed = True
            for memory in self.memories:
                memory.clear()
            self._release_all()

    def _require_open(self) -> None:
        if self._closed:
            raise DeviceClosed(f"the device ({self.name}) was closed and takes no more commands: open another one")

    def __enter__(self) -> Device:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self._shut()

    # What a kind of device does

    @abc.abstractmethod
    def _add_queue(self, name: str) -> None:
        """Prepare for commands on the new queue ``name``."""

    @abc.abstractmethod
    def _perform(self, index: int, record: Record) -> tuple[torch.Tensor, Record] | None:
        """Carry out ``record``. For a host read: its bytes, and the record with their digest."""

    def _perform_call(self, index: int, records: Sequence[Record], kept: KeptCall) -> bool:
        """Carry out all ``records`` of a kept call at once, if this device can; False: they are carried out one by one.

        ``index`` is the number of the first. ``kept.compiled`` is the device's own, for the next time.
        """
        return False

    @abc.abstractmethod
    def _release_all(self) -> None:
        """Free all memory."""

    @abc.abstractmethod
    def timeline(self) -> Timeline:
        """When everything happened so far."""
