"""The records of a command stream: everything that a program asks of a device, as plain frozen data.

A record knows no tensor and no device. ``where`` is the source line (``file:line``) that issued it; ``call`` numbers
the ExecuteCommandLists call that a queue command belongs to (commands recorded into one list share it); ``listed`` says
that it was recorded into a command list, where the program's state tracker saw it. Sizes and offsets are bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

__all__ = [
    "DEVICE_TO_HOST",
    "DTYPE_BYTES",
    "HEAPS",
    "HOST",
    "HOST_TO_DEVICE",
    "MAX_NAME",
    "MAX_TEXT",
    "RECORD_TYPES",
    "Allocate",
    "AssumeCommon",
    "Copy",
    "Dispatch",
    "Free",
    "HostRead",
    "HostWait",
    "HostWrite",
    "Record",
    "Scalar",
    "Signal",
    "Source",
    "Span",
    "Transition",
    "View",
    "Wait",
    "again",
    "queue_of",
    "with_call",
]

HOST = "host"
"""The lane of everything the host does itself."""

HEAPS = ("default", "upload", "readback", "custom")
"""Default heap = device memory; upload and readback heaps = pinned host memory, written or read by the host. A custom
heap is pinned host memory that the host writes and reads, and that queues copy from and into."""

HOST_TO_DEVICE, DEVICE_TO_HOST = ("upload", "custom"), ("readback", "custom")
"""The heaps in host memory that queues copy from, and those that they copy into."""

MAX_NAME, MAX_TEXT = 256, 1024
"""Characters: of a name (a buffer, fence, queue, kernel, source, a parameter's text), and of a label or source line."""

DTYPE_BYTES = {"uint8": 1, "bool": 1, "int32": 4, "int64": 8, "float16": 2, "bfloat16": 2, "float32": 4}
"""Bytes an element of each dtype that a view may have; the names are torch's."""

Scalar = int | float | str | bool | None
"""What a kernel parameter may be: exactly what JSON can say."""


@dataclass(frozen=True, slots=True)
class Span:
    """``size`` bytes of ``buffer`` from ``offset`` on."""

    buffer: str
    offset: int
    size: int

    @property
    def end(self) -> int:
        """The first byte after the span."""
        return self.offset + self.size

    def overlaps(self, other: Span) -> bool:
        """Whether at least one byte belongs to both."""
        return self.buffer == other.buffer and self.offset < other.end and other.offset < self.end

    def __str__(self) -> str:
        return f"{self.buffer}[{self.offset}:{self.end}]"


@dataclass(frozen=True, slots=True)
class View:
    """A contiguous tensor inside a buffer: what a kernel gets as an operand."""

    buffer: str
    offset: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Bytes from the first element to the end of the last."""
        return math.prod(self.shape) * DTYPE_BYTES[self.dtype]

    @property
    def span(self) -> Span:
        """The bytes of the whole view."""
        return Span(self.buffer, self.offset, self.nbytes)

    def rows(self, start: int, stop: int) -> View:
        """The view ``[start:stop]`` along the first dimension, which is contiguous again."""
        if not self.shape:
            raise ValueError("a view without dimensions has no rows")
        if not 0 <= start <= stop <= self.shape[0]:
            raise ValueError(f"rows {start}:{stop} of a view with {self.shape[0]} rows")
        row = self.nbytes // self.shape[0] if self.shape[0] else 0
        return View(self.buffer, self.offset + start * row, (stop - start, *self.shape[1:]), self.dtype)


@dataclass(frozen=True, slots=True)
class Source:
    """Bytes that come from outside the device, by name: ``size`` bytes of the source ``name`` from ``offset`` on."""

    name: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Base of all records."""

    op: ClassVar[str] = ""
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocate(Record):
    """The host creates ``buffer`` of ``size`` bytes on ``heap`` (one of `HEAPS`), aligned to 256 bytes.

    ``mapped`` names the source whose bytes an upload heap *is*: nothing is copied, and the host never writes it. '' for
    memory of its own. ``node``: the card that a default-heap buffer lies on.
    """

    op: ClassVar[str] = "allocate"
    buffer: str
    size: int
    heap: str
    mapped: str = ""
    node: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Free(Record):
    """The host gives ``buffer`` back. No queue may still use it."""

    op: ClassVar[str] = "free"
    buffer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostWrite(Record):
    """The host writes ``source`` into ``dst``, a span of an upload or custom heap, now (not in a queue's order)."""

    op: ClassVar[str] = "host_write"
    dst: Span
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRead(Record):
    """The host reads ``src``, a span of a readback or custom heap, now. ``digest``: BLAKE2b-128 of what it saw, or
    ''."""

    op: ClassVar[str] = "host_read"
    src: Span
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostWait(Record):
    """The host blocks until ``fence`` has reached ``value``."""

    op: ClassVar[str] = "host_wait"
    fence: str
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumeCommon(Record):
    """The program's state tracker takes ``buffer`` to be in COMMON. Bookkeeping of the host: no device sees it."""

    op: ClassVar[str] = "assume_common"
    buffer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy(Record):
    """``queue`` copies ``src`` to ``dst``; both spans have the same size."""

    op: ClassVar[str] = "copy"
    queue: str
    dst: Span
    src: Span
    call: int
    label: str = ""
    listed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch(Record):
    """``queue`` runs the registered ``kernel`` on ``operands`` with ``params``."""

    op: ClassVar[str] = "dispatch"
    queue: str
    kernel: str
    operands: dict[str, View] = field(default_factory=dict)
    params: dict[str, Scalar] = field(default_factory=dict)
    call: int
    label: str = ""
    listed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition(Record):
    """A barrier in a command list of ``queue``: ``buffer`` goes from state ``before`` to state ``after``."""

    op: ClassVar[str] = "transition"
    queue: str
    buffer: str
    before: str
    after: str
    call: int
    listed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal(Record):
    """``queue`` sets ``fence`` to ``value`` once all that was submitted to it before has completed."""

    op: ClassVar[str] = "signal"
    queue: str
    fence: str
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait(Record):
    """``queue`` goes no further until ``fence`` has reached ``value``."""

    op: ClassVar[str] = "wait"
    queue: str
    fence: str
    value: int


RECORD_TYPES: dict[str, type[Record]] = {
    kind.op: kind
    for kind in (
        Allocate,
        Free,
        HostWrite,
        HostRead,
        HostWait,
        AssumeCommon,
        Copy,
        Dispatch,
        Transition,
        Signal,
        Wait,
    )
}
"""Every kind of record by its ``op``."""


def again(record: Record, call: int, params: Mapping[str, Scalar]) -> Record:
    """``record`` of a command list as it is executed again, in call ``call``, with ``params`` in place of its own."""
    # Written out: every command of every pass comes through here, and `replace` takes five times as long.
    if isinstance(record, Dispatch):
        mine = {**record.params, **params} if params else record.params
        return Dispatch(
            queue=record.queue, kernel=record.kernel, operands=record.operands, params=mine, call=call,
            label=record.label, listed=record.listed, where=record.where,
        )  # fmt: skip
    if isinstance(record, Copy):
        return Copy(
            queue=record.queue, dst=record.dst, src=record.src, call=call, label=record.label, listed=record.listed,
            where=record.where,
        )  # fmt: skip
    return with_call(record, call)


def with_call(record: Record, call: int) -> Record:
    """``record`` as part of ExecuteCommandLists call ``call``, if it is a command of a queue."""
    if isinstance(record, (Copy, Dispatch, Transition)):
        return replace(record, call=call)
    return record


def queue_of(record: Record) -> str:
    """The lane that executes ``record``: the name of a queue, or `HOST`."""
    return getattr(record, "queue", HOST)
