"""Buffers and heaps: handles to named memory of a device. They hold no bytes themselves."""

from __future__ import annotations

import torch

from xinfer_lab.device.arguments import plain_name, whole_number
from xinfer_lab.device.caller import caller
from xinfer_lab.device.command_sink import CommandSink
from xinfer_lab.device.errors import BufferRangeError
from xinfer_lab.device.records import DTYPE_BYTES, AssumeCommon, Free, HostRead, HostWrite, Source, Span, View

__all__ = ["Buffer", "HostHeap", "MappedHeap", "ReadbackHeap", "UploadHeap", "as_span"]


class Buffer:
    """``size`` bytes of memory named ``name``; on the default heap, device memory that counts against the budget."""

    heap = "default"

    def __init__(self, device: CommandSink, name: str, size: int) -> None:
        self.device = device
        self.name, self.size = plain_name(name, "a buffer"), whole_number(size, "a buffer's size in bytes")

    def span(self, offset: int = 0, size: int | None = None) -> Span:
        """``size`` bytes from ``offset`` on (default: to the end)."""
        offset = whole_number(offset, "an offset in bytes")
        return Span(self.name, offset, self.size - offset if size is None else whole_number(size, "a size in bytes"))

    def view(self, dtype: str | torch.dtype, shape: tuple[int, ...], offset: int = 0) -> View:
        """A contiguous tensor of ``shape`` at byte ``offset``, as an operand for kernels."""
        name = str(dtype).removeprefix("torch.")
        if name not in DTYPE_BYTES:
            raise TypeError(f"a view cannot have dtype {dtype}; one of {', '.join(DTYPE_BYTES)}")
        sizes = tuple(whole_number(size, "each size of a view's shape") for size in shape)
        return View(self.name, whole_number(offset, "an offset in bytes"), sizes, name)

    @property
    def tracked_state(self) -> str:
        """The D3D12 state that the program's tracker has for this buffer: bookkeeping, not what the device knows."""
        return self.device.tracker.state(self.name)

    def assume_common(self) -> None:
        """Tell the tracker that the buffer has decayed to COMMON.

        True once the queue that you record for has waited for the fence of the last call on another queue that used the
        buffer; until then the claim is early. The device itself never sees this call.
        """
        self.device.record_bookkeeping(AssumeCommon(buffer=self.name, where=caller()))

    def free(self) -> None:
        """Give the memory back. The host must have waited for every queue command that uses it."""
        self.device.submit(Free(buffer=self.name, where=caller()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.size} bytes)"

    def __bool__(self) -> bool:
        raise TypeError("a buffer has no truth value: its contents live on the device; compare with None instead")


class UploadHeap(Buffer):
    """Persistently mapped, pinned host memory that queues copy from. Writing is immediate: it waits for nothing."""

    heap = "upload"

    def write(self, offset: int, source: str | Source | torch.Tensor | bytes, *, name: str | None = None) -> Span:
        """Fill bytes from ``offset`` on with ``source`` and return the span written.

        ``source`` is a named source (a weight of a mounted checkpoint, by name or as a range) or small data, which
        becomes an input of the stream called ``name`` (a fresh name if None). A copy that was submitted but has not run
        yet will read the *new* bytes: wait for its fence before you write over what it reads.
        """
        sources = self.device.sources
        if isinstance(source, str):
            source = sources.whole(source)
        elif not isinstance(source, Source):
            source = sources.put(name or self.device.fresh_name("input"), source)
        span = self.span(offset, source.size)
        self.device.submit(HostWrite(dst=span, source=source, where=caller()))
        return span


class MappedHeap(Buffer):
    """Host memory that queues copy from and that is a named source itself, such as a mapped file: nothing was copied.

    The host cannot write it, and the bytes must not change while it lives.
    """

    heap = "upload"


class ReadbackHeap(Buffer):
    """Pinned host memory that queues copy into and the host reads. Reading is immediate: wait for the fence first."""

    heap = "readback"

    def read(self, dtype: str | torch.dtype, shape: tuple[int, ...], offset: int = 0) -> torch.Tensor:
        """A copy of the bytes there now, as a host tensor of ``dtype`` and ``shape``."""
        view = self.view(dtype, shape, offset)
        raw = self.device.submit(HostRead(src=view.span, where=caller()))
        assert raw is not None
        return raw.view(getattr(torch, view.dtype)).reshape(view.shape)


class HostHeap(UploadHeap, ReadbackHeap):
    """Pinned host memory that the host writes and reads, and that queues copy from and into.

    For bytes that come and go; in D3D12 a custom heap in the host's memory. Neither reading nor writing waits for
    anything: wait for the fence of the last copy first.
    """

    heap = "custom"


def as_span(target: Buffer | Span | View, device: CommandSink) -> Span:
    """The bytes that ``target`` names for a command on ``device``: a whole buffer, a span, or a view."""
    if isinstance(target, Span):
        return target
    if isinstance(target, View):
        return target.span
    if isinstance(target, Buffer):
        if target.device is not device:
            raise BufferRangeError(f"buffer {target.name!r} belongs to another device ({target.device.name})")
        return target.span()
    raise TypeError(f"a copy needs a buffer, a span or a view, not {type(target).__name__}")
