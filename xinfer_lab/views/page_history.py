"""Reads from a command stream which page lay in which frame whenever a pool's frames were used.

The pool's own table is not asked: a picture of what the table believes could not show where it is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from xinfer_lab.device.device import KERNELS
from xinfer_lab.device.kernels import KernelTable
from xinfer_lab.device.records import Copy, Dispatch, Record, Span
from xinfer_lab.paging.transfers import AND

__all__ = ["FrameContent", "PageUse", "page_history"]

NEW = "new"
"""The name of a page that never came from the host: the device wrote it first."""


@dataclass(frozen=True, slots=True)
class FrameContent:
    """What a frame holds: the page called ``name``; ``used`` since it came or not, ``dirty``: written since it was last
    copied to the host."""

    name: str
    used: bool = False
    dirty: bool = False


@dataclass(frozen=True, slots=True)
class PageUse:
    """Record ``record``, called ``what``, uses ``frames``; ``contents`` is what each frame holds then.

    ``fetched`` and ``saved`` are the pages whose copies to the device and to the host were submitted since the use
    before.
    """

    record: int
    what: str
    frames: tuple[int, ...]
    contents: dict[int, FrameContent]
    fetched: tuple[str, ...] = ()
    saved: tuple[str, ...] = ()


def page_history(
    stream: Iterable[Record], page_bytes: int, *, pool: str = "pool", kernels: KernelTable = KERNELS
) -> tuple[PageUse, ...]:
    """Each use of the frames in the buffer called ``pool``, in issue order; commands in a row on the same frames, with
    no copy between them, are one use.

    A page's name is read from the label of the copy that brought it, alone or with others. ``kernels`` say which of
    them write; a kernel that they do not hold counts as reading.
    """
    contents: dict[int, FrameContent] = {}
    uses: list[PageUse] = []
    fetched: list[str] = []
    saved: list[str] = []
    for index, record in enumerate(stream):
        match record:
            case Copy() if record.dst.buffer == pool:
                for name, places in _moved(record, record.dst, page_bytes):
                    fetched.append(name)
                    contents |= dict.fromkeys(places, FrameContent(name))
            case Copy() if record.src.buffer == pool:
                for name, places in _moved(record, record.src, page_bytes):
                    saved.append(name)
                    for frame in places:
                        contents[frame] = replace(contents.get(frame, FrameContent(NEW)), dirty=False, name=name)
            case Dispatch():
                frames = _used(record, pool, page_bytes)
                if not frames:
                    continue
                written = _written(record, pool, page_bytes, kernels)
                for frame in written:
                    contents.setdefault(frame, FrameContent(NEW))
                again = uses and uses[-1].frames == frames and not fetched and not saved
                if not again:
                    what = record.label or record.kernel
                    uses.append(PageUse(index, what, frames, dict(contents), tuple(fetched), tuple(saved)))
                    fetched, saved = [], []
                for frame in frames:
                    if frame in contents:
                        held = contents[frame]
                        contents[frame] = replace(held, used=True, dirty=held.dirty or frame in written)
    return tuple(uses)


def _moved(record: Copy, span: Span, page_bytes: int) -> list[tuple[str, range]]:
    """What was copied, by name, with the frames of each: a copy may move several pages side by side."""
    name, frames = _name(record), _frames(span, page_bytes)
    names = name.split(AND)
    # Only single pages tell by their number who lies where.
    if len(names) != len(frames):
        return [(name, frames)]
    return [(one, range(frame, frame + 1)) for one, frame in zip(names, frames, strict=True)]


def _name(record: Copy) -> str:
    verb, _, name = record.label.partition(" ")
    return name if verb in ("bring", "save") and name else record.label or "a page"


def _frames(span: Span, page_bytes: int) -> range:
    return range(span.offset // page_bytes, -(-span.end // page_bytes))


def _used(record: Dispatch, pool: str, page_bytes: int) -> tuple[int, ...]:
    spans = (view.span for view in record.operands.values() if view.buffer == pool)
    return tuple(sorted({frame for span in spans for frame in _frames(span, page_bytes)}))


def _written(record: Dispatch, pool: str, page_bytes: int, kernels: KernelTable) -> set[int]:
    if record.kernel not in kernels:
        return set()
    spans = (span for span in kernels.access(record).writes if span.buffer == pool)
    return {frame for span in spans for frame in _frames(span, page_bytes)}
