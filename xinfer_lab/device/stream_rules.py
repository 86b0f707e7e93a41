"""What no device could do is refused here, with an error that teaches, on every device and for any stream.

The rules see records alone, not tensors, so a recording from a student's process is held to them exactly as a live
program is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xinfer_lab.device.errors import BufferRangeError, EarlyWait, FenceError, StreamError
from xinfer_lab.device.kernels import KernelTable
from xinfer_lab.device.node_names import node_of
from xinfer_lab.device.records import (
    DEVICE_TO_HOST,
    DTYPE_BYTES,
    HOST,
    HOST_TO_DEVICE,
    Allocate,
    AssumeCommon,
    Copy,
    Dispatch,
    Free,
    HostRead,
    HostWait,
    HostWrite,
    Record,
    Signal,
    Span,
    Transition,
    Wait,
)

__all__ = ["BUFFER_ALIGNMENT", "StreamRules"]

BUFFER_ALIGNMENT = 256
"""Every buffer starts at a multiple of this many bytes, on every device: equal bytes need equal alignment."""


@dataclass(frozen=True, slots=True)
class _FenceHistory:
    queue: str
    last: int
    where: str


@dataclass(slots=True)
class StreamRules:
    """Admits records one by one, in issue order: `check` may raise and changes nothing, `note` takes a record in."""

    kernels: KernelTable
    queues: set[str] = field(default_factory=set)
    buffers: dict[str, Allocate] = field(default_factory=dict)
    _freed: dict[str, Free] = field(default_factory=dict)
    _fences: dict[str, _FenceHistory] = field(default_factory=dict)
    _last_call: tuple[int, str] = (0, HOST)
    frees: int = 0
    """How often a buffer was freed: what was seen living before and since then nothing was freed, lives."""

    def admit(self, record: Record) -> None:
        """`check` and `note`."""
        self.check(record)
        self.note(record)

    def check(self, record: Record) -> None:
        """Raise a `DeviceError` if ``record`` cannot follow what was noted so far. Changes nothing."""
        queue = getattr(record, "queue", None)
        if queue is not None and queue not in self.queues:
            raise StreamError(f"there is no queue {queue!r}; this device has {', '.join(sorted(self.queues))}")
        # What comes most often stands first, here and in `note`.
        match record:
            case Copy():
                self._check_copy(record)
            case Dispatch():
                self._check_dispatch(record)
            case Signal():
                self._check_signal(record)
            case Wait() | HostWait():
                self._check_wait(record)
            case Allocate():
                self._check_allocate(record)
            case Free():
                self._living(record.buffer, "freed")
            case HostWrite():
                if (source := self._inside(record.dst, HOST_TO_DEVICE, "written by the host").mapped) != "":
                    raise BufferRangeError(
                        f"{record.dst.buffer!r} is the source {source!r} itself, mapped: the host cannot write there"
                    )
                if record.dst.size != record.source.size:
                    raise BufferRangeError(
                        f"{record.source.size} bytes of {record.source.name!r} do not fill {record.dst} "
                        f"({record.dst.size} bytes)"
                    )
            case HostRead():
                self._inside(record.src, DEVICE_TO_HOST, "read by the host")
            case AssumeCommon():
                self._living(record.buffer, "assumed to be in COMMON")
            case Transition():
                if (heap := self._living(record.buffer, "transitioned").heap) in ("upload", "readback"):
                    raise BufferRangeError(f"{record.buffer!r} is on the {heap} heap: its state is fixed")
                self._check_call(record.call, record.queue)
            case _:
                raise StreamError(f"a record of kind {record.op!r} is not known")

    def note(self, record: Record) -> None:
        """Take in ``record``, which was checked."""
        match record:
            case Copy() | Dispatch() | Transition():
                self._last_call = (record.call, record.queue)
            case Signal():
                self._fences[record.fence] = _FenceHistory(record.queue, record.value, record.where)
            case Allocate():
                self._freed.pop(record.buffer, None)
                self.buffers[record.buffer] = record
            case Free():
                self._freed[record.buffer] = record
                self.frees += 1
                del self.buffers[record.buffer]

    def _living(self, name: str, verb: str) -> Allocate:
        if (buffer := self.buffers.get(name)) is not None:
            return buffer
        if (free := self._freed.get(name)) is not None:
            raise BufferRangeError(
                f"use after free: {name!r} cannot be {verb}, it was freed at {free.where or 'an unknown line'}"
            )
        raise BufferRangeError(f"there is no buffer {name!r} to be {verb}; living: {', '.join(self.buffers) or 'none'}")

    def _inside(self, span: Span, heaps: tuple[str, ...], verb: str) -> Allocate:
        buffer = self._living(span.buffer, verb)
        if heaps and buffer.heap not in heaps:
            hint = {
                "upload": "the host writes upload heaps only; a queue copies from there into device memory",
                "readback": "the host reads readback heaps only; a queue copies device memory into one first",
                "default": "kernels work on device memory only; copy the bytes into a default-heap buffer first",
            }[heaps[0]]
            raise BufferRangeError(f"{span.buffer!r} is on the {buffer.heap} heap and cannot be {verb}: {hint}")
        if span.size <= 0:
            raise BufferRangeError(f"{span} cannot be {verb}: it holds no bytes; ask for at least one")
        if span.offset < 0 or span.end > buffer.size:
            raise BufferRangeError(f"{span} cannot be {verb}: the buffer has bytes 0 to {buffer.size}")
        return buffer

    def _check_allocate(self, record: Allocate) -> None:
        if record.buffer in self.buffers:
            raise StreamError(
                f"a buffer named {record.buffer!r} is alive already, from {self.buffers[record.buffer].where or '?'}"
            )
        if record.size <= 0:
            raise BufferRangeError(f"buffer {record.buffer!r} cannot have {record.size} bytes; ask for at least one")
        if not any(node_of(queue) == record.node for queue in self.queues):
            raise StreamError(f"buffer {record.buffer!r} cannot lie on node {record.node}: this device has none")
        if record.mapped and record.heap != "upload":
            raise BufferRangeError(
                f"{record.buffer!r} is to be the source {record.mapped!r} itself: that is for upload heaps, which "
                f"queues copy from, not for the {record.heap} heap"
            )

    def _check_copy(self, record: Copy) -> None:
        if record.dst.size != record.src.size:
            raise BufferRangeError(f"a copy needs equal sizes: {record.dst} <- {record.src}")
        dst, src = self._inside(record.dst, (), "copied to"), self._inside(record.src, (), "copied from")
        if dst.heap == "upload":
            raise BufferRangeError(f"a queue cannot copy into the upload heap {record.dst.buffer!r}")
        if src.heap == "readback":
            raise BufferRangeError(f"a queue cannot copy from the readback heap {record.src.buffer!r}")
        nodes = {held.node for held in (dst, src) if held.heap == "default"}
        if nodes and node_of(record.queue) not in nodes:
            raise BufferRangeError(
                f"the {record.queue} queue belongs to node {node_of(record.queue)}, and {record.dst} <- {record.src} "
                f"touches node {', '.join(map(str, sorted(nodes)))}: let a queue of such a node copy"
            )
        if record.dst.overlaps(record.src):
            raise BufferRangeError(f"a copy cannot overlap itself: {record.dst} <- {record.src}")
        self._check_call(record.call, record.queue)

    def _check_dispatch(self, record: Dispatch) -> None:
        kernel, node = self.kernels[record.kernel], node_of(record.queue)
        for name, view in record.operands.items():
            heaps = ("default", *HOST_TO_DEVICE) if name in kernel.from_host else ("default",)
            held = self._inside(view.span, heaps, f"operand {name!r} of kernel {record.kernel!r}")
            if held.heap == "default" and held.node != node:
                raise BufferRangeError(
                    f"operand {name!r} of kernel {record.kernel!r}: {view.buffer!r} lies on node {held.node}, and the "
                    f"{record.queue} queue computes on node {node}; copy the bytes into a buffer of node {node} first"
                )
            if view.offset % DTYPE_BYTES[view.dtype]:
                raise BufferRangeError(f"operand {name!r}: offset {view.offset} is not a multiple of its {view.dtype}")
        kernel.check(record.operands, record.params)
        self._check_call(record.call, record.queue)

    def _check_call(self, call: int, queue: str) -> None:
        last, last_queue = self._last_call
        if call < last or (call == last and queue != last_queue):
            raise StreamError(
                f"call {call} on {queue!r} comes after call {last} on {last_queue!r}: lists execute whole"
            )

    def _check_signal(self, record: Signal) -> None:
        history = self._fences.get(record.fence)
        if record.value <= 0:
            raise FenceError(f"fence {record.fence!r} starts at 0: signal it with 1 or more, not {record.value}")
        if history is None:
            return
        if history.queue != record.queue:
            raise FenceError(
                f"fence {record.fence!r} belongs to the {history.queue} queue, which signalled it at "
                f"{history.where or '?'}; "
                f"the {record.queue} queue needs a fence of its own: two signallers would race"
            )
        if record.value <= history.last:
            raise FenceError(
                f"fence {record.fence!r} is at {history.last} (signalled at {history.where or '?'}); the next "
                f"value must be greater, not {record.value}: a wait could not tell the two apart"
            )

    def _check_wait(self, record: Wait | HostWait) -> None:
        history = self._fences.get(record.fence)
        last = history.last if history else 0
        if record.value < 0:
            raise FenceError(f"fence {record.fence!r} starts at 0: there is nothing to wait for at {record.value}")
        if record.value > last:
            who = "the host" if isinstance(record, HostWait) else f"the {record.queue} queue"
            raise EarlyWait(
                f"{who} waits for {record.fence!r} >= {record.value}, but the highest value submitted so far is "
                f"{last}. "
                "Submit the signal first, then the wait: on a GPU an event that was never recorded cannot be "
                "waited for, and with a D3D12 fence this wait would hang until somebody signals."
            )

    def last_value(self, fence: str) -> int:
        """The highest value of ``fence`` that a queue was asked to signal so far; 0 if none was."""
        history = self._fences.get(fence)
        return history.last if history else 0
