"""Notes the calls of an answer's methods beside the stream: which commands were issued within which call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from xinfer_lab.device.device import Device
from xinfer_lab.grading.numbers import whole
from xinfer_lab.grading.values import BadData
from xinfer_lab.paging.errors import PoolFull

__all__ = ["REFUSED", "Call", "NotedEngine", "NotedPool", "NotedRing", "noted", "read_calls"]

MAX_CALLS = 20_000
_LARGEST = 2**62
REFUSED = -1
"""In place of a frame."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of ``name``: records ``begin`` to ``end`` (not included) were issued meanwhile.

    ``values`` are what it was given or gave, as far as they are names and whole numbers.
    """

    name: str
    begin: int
    end: int
    values: tuple[str | int, ...] = ()


@contextmanager
def noted(device: Device, name: str, *values: object) -> Iterator[list[object]]:
    """Notes a call of ``name`` on a device that keeps such notes; what is added to the yielded list is noted, too."""
    calls: list[dict[str, Any]] | None = getattr(device, "calls", None)
    given = list(values)
    call: dict[str, Any] = {"name": name, "begin": len(device.stream), "end": len(device.stream), "values": []}
    if calls is not None and len(calls) < MAX_CALLS:
        calls.append(call)
    try:
        yield given
    finally:
        call["end"] = len(device.stream)
        call["values"] = [_plain(value) for value in given]


def _plain(value: object) -> str | int:
    number = whole(value)
    if number is not None and abs(number) < _LARGEST:
        return number
    return value[:200] if type(value) is str else 0


class NotedRing:
    """A staging ring that notes each ``allocate`` (heap, offset, size) and each ``retire`` (value)."""

    def __init__(self, device: Device, ring: Any) -> None:
        self._device, self._ring = device, ring

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ring, name)

    def allocate(self, size: Any) -> Any:
        """The ring's own, noted."""
        with noted(self._device, "allocate") as values:
            offset = self._ring.allocate(size)
            values += [getattr(self._ring.heap, "name", ""), offset, size]
            return offset

    def retire(self, fence: Any, value: Any) -> Any:
        """The ring's own, noted."""
        with noted(self._device, "retire", value):
            return self._ring.retire(fence, value)


class NotedEngine:
    """A copy engine that notes each ``upload`` (layer)."""

    def __init__(self, device: Device, engine: Any) -> None:
        self._device, self._engine = device, engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def upload(self, layer: Any, slot: Any) -> Any:
        """The engine's own, noted."""
        with noted(self._device, "upload", layer):
            return self._engine.upload(layer, slot)


class NotedPool:
    """A page pool that notes each ``prefetch`` (page, 1 or 0), ``acquire`` (page, frame; -1 where the pool is full),
    ``release`` (page) and ``evict`` (page, frame). What a part asks of the pool in turn is not noted."""

    def __init__(self, device: Device, pool: Any) -> None:
        self._device, self._pool = device, pool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def prefetch(self, page: int) -> bool:
        """The pool's own, noted."""
        with noted(self._device, "prefetch", page) as values:
            coming: bool = self._pool.prefetch(page)
            values.append(int(coming))
            return coming

    def acquire(self, page: int, write: bool = False) -> int:
        """The pool's own, noted."""
        with noted(self._device, "acquire", page) as values:
            try:
                frame: int = self._pool.acquire(page, write)
            except PoolFull:
                values.append(REFUSED)
                raise
            values.append(frame)
            return frame

    def release(self, page: int) -> None:
        """The pool's own, noted."""
        with noted(self._device, "release", page):
            self._pool.release(page)

    def evict(self, page: int) -> int:
        """The pool's own, noted."""
        with noted(self._device, "evict", page) as values:
            frame: int = self._pool.evict(page)
            values.append(frame)
            return frame


def read_calls(data: object) -> tuple[Call, ...]:
    """The calls that a recording says. Raises `BadData` for anything else."""
    if not isinstance(data, list) or len(data) > MAX_CALLS:
        raise BadData("the calls of an answer are a list")
    calls = []
    for call in data:
        match call:
            case {"name": str(name), "begin": int(begin), "end": int(end), "values": list(values), **rest} if (
                not rest and all(type(value) in (str, int) for value in values) and 0 <= begin <= end <= _LARGEST
            ):
                calls.append(Call(name, begin, end, tuple(values)))
            case _:
                raise BadData("a call has a name, a begin, an end and plain values")
    return tuple(calls)
