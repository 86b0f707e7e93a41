"""Lab 5: scripts of what is asked of a page pool, and the program that plays one. No model is in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import torch

from xinfer_lab.device.buffers import Buffer
from xinfer_lab.device.device import Device
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.grading.programs.calls import NotedPool
from xinfer_lab.grading.values import BadData, Value
from xinfer_lab.labs.lab5.given.parts_pool import PartsPool
from xinfer_lab.labs.lab5.numbered import anew
from xinfer_lab.labs.lab5.page_shape import PageShape
from xinfer_lab.paging.errors import PoolFull

__all__ = ["PAGE", "Op", "PoolScript", "play"]

PAGE = 512
"""Bytes of a page here."""
HALF = PAGE // 2
"""Bytes that are written at a time."""

Parts = Mapping[str, Any]
Op = tuple[str, int]
CALLS = ("prefetch", "acquire", "write", "release", "evict")
"""What is asked of the pool; the direct queue's ``use`` of a page comes besides, and ``put`` writes half of it."""


@dataclass(frozen=True, slots=True)
class PoolScript:
    """What is asked of a pool of ``frames`` frames and ``pages`` pages, in order.

    ``prefetch``, ``acquire``, ``write`` (acquire, to write), ``release`` and ``evict`` a page; ``use`` and ``put``: the
    direct queue reads the page, or writes half of it. In the end every page that is there is evicted. Bytes are drawn
    from ``seed``: those of the pages are named ``page[p]``, what the k-th ``put`` writes ``written[k]``.

    ``others``: it is not the only pool made of these parts. One was used and closed before, and another one is asked in
    between; both on devices of their own.
    """

    frames: int
    pages: int
    ops: tuple[Op, ...]
    seed: int
    others: bool = False

    @classmethod
    def of(cls, inputs: Mapping[str, Value]) -> PoolScript:
        """The script that ``inputs`` describe. Raises `BadData` for anything else."""
        match dict(inputs):
            case {
                "frames": int(frames), "pages": int(pages), "ops": list(ops), "seed": int(seed), "others": bool(others)
            }:  # fmt: skip
                return cls(frames, pages, tuple((name, page) for name, page in ops), seed, others)
        raise BadData("a script has the fields frames, pages, ops, seed and others")

    def inputs(self) -> dict[str, Value]:
        """The script as the inputs of a case."""
        ops = [list(op) for op in self.ops]
        own = {"frames": self.frames, "pages": self.pages, "ops": ops}
        return {**own, "seed": self.seed, "others": self.others}

    @property
    def shape(self) -> PageShape:
        """The pool's sizes."""
        return PageShape(self.frames, self.pages, PAGE)

    def places(self, name: str) -> list[int]:
        """The pages of the operations ``name``, in order."""
        return [page for op, page in self.ops if op == name]

    @property
    def calls(self) -> list[Op]:
        """What the pool is asked before the end."""
        names = {"write": "acquire"}
        return [(names.get(op, op), page) for op, page in self.ops if op in CALLS]

    def contents(self) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """The bytes that each ``use`` has to see, and those of every page at home in the end."""
        given = self.weights()
        now = [given.bytes(f"page[{page}]").clone() for page in range(self.pages)]
        seen, puts = [], 0
        for op, page in self.ops:
            if op == "use":
                seen.append(now[page].clone())
            elif op == "put":
                start = self.put_at(puts)
                now[page][start : start + HALF] = given.bytes(f"written[{puts}]")
                puts += 1
        return seen, now

    @staticmethod
    def put_at(number: int) -> int:
        """The byte of its page that the ``number``-th ``put`` begins at."""
        return number % 2 * HALF

    # As a `ProgramCase`

    layers = 1
    read_backs = ("seen.back",)

    @property
    def memory(self) -> int:
        """Frames, what is written, and what was seen."""
        return (self.frames + max(1, self.steps)) * PAGE + max(1, len(self.places("put"))) * HALF

    @property
    def steps(self) -> int:
        """Uses."""
        return len(self.places("use"))

    def weights(self) -> ScriptBytes:
        """The bytes of its pages, and of what is written."""
        return ScriptBytes(self)

    def spec(self, ratio: float = 1.0) -> GpuSpec:
        """A GPU on which a page crosses the link in a millisecond, each way, and a use takes half of that."""
        return GpuSpec("a page a millisecond", 2**30, PAGE / 1e-3, 0.0, 1e12, 4 * PAGE / 1e-3, 0.0, 1e12)


class ScriptBytes:
    """The named bytes of a script, drawn from its seed."""

    def __init__(self, script: PoolScript) -> None:
        self._seed = script.seed
        self._sizes = {f"page[{page}]": PAGE for page in range(script.pages)}
        self._sizes |= {f"written[{k}]": HALF for k in range(len(script.places("put")))}

    def nbytes(self, name: str) -> int | None:
        """Bytes of the source ``name``; None if there is none."""
        return self._sizes.get(name)

    def bytes(self, name: str) -> torch.Tensor:
        """The bytes of the source ``name``."""
        raw = Random(f"{self._seed} {name}").randbytes(self.nbytes(name) or 0)
        return torch.frombuffer(bytearray(raw), dtype=torch.uint8)


def play(parts: Parts, inputs: Mapping[str, Value], open_device: Callable[..., Device]) -> None:
    """Play the script on a pool with ``parts``."""
    script = PoolScript.of(inputs)
    device = open_device(memory=script.memory)
    beside = _others(script, parts) if script.others else iter(())
    next(beside, None)
    for _ in _played(script, parts, device):
        next(beside, None)


AHEAD = 7
"""Requests that the other pool is ahead, so that what is noted for both in one place is wrong for either."""


def _others(script: PoolScript, parts: Parts) -> Iterator[None]:
    """Another pool that is over before the first step, then a request of a third at each."""
    for ahead in (len(script.ops), AHEAD):
        steps = _played(script, parts, EmulatedDevice(memory=script.memory, check=False))
        for _, _ in zip(range(ahead), steps, strict=False):
            pass
    yield from steps


def _played(script: PoolScript, parts: Parts, device: Device) -> Iterator[None]:
    """Open the pool, ask one request at each step, look at everything, close pool and device."""
    device.sources.mount(script.weights())
    pool = PartsPool(device, frames=script.frames, pages=script.pages, page_bytes=PAGE, parts=parts)
    noted = NotedPool(device, pool)
    seen = device.create_buffer(max(1, script.steps) * PAGE, "seen")
    back = device.create_readback_heap(seen.size, "seen.back")
    fresh = _given(device, len(script.places("put")))
    for page in range(script.pages):
        pool.fill(page, f"page[{page}]")
    frames: dict[int, int] = {}
    uses = puts = 0
    for op, number in script.ops:
        page = anew(number)
        if op in ("acquire", "write"):
            frame = _acquire(noted, page, op == "write")
            if frame is not None:
                frames[page] = frame
        elif op == "use":
            device.direct_queue.copy(seen.span(uses * PAGE, PAGE), pool.span(frames[page]), label=f"use page {page}")
            uses += 1
        elif op == "put":
            half = pool.buffer.span(frames[page] * PAGE + script.put_at(puts), HALF)
            device.direct_queue.copy(half, fresh.span(puts * HALF, HALF), label=f"write page {page}")
            puts += 1
        else:
            getattr(noted, op)(page)
        yield
    for page in range(script.pages):
        if pool.table.frame_of(page) is not None:
            noted.evict(page)
    device.direct_queue.copy(back, seen, label="what was seen")
    device.wait_idle()
    for number in range(uses):
        back.read("uint8", (PAGE,), number * PAGE)
    for page in range(script.pages):
        pool.read_home(page)
    pool.close()
    device.close()


def _given(device: Device, puts: int) -> Buffer:
    """Device memory with what is going to be written."""
    fresh = device.create_buffer(max(1, puts) * HALF, "fresh")
    if puts:
        staging = device.create_upload_heap(puts * HALF, "fresh.in")
        for number in range(puts):
            staging.write(number * HALF, f"written[{number}]")
        device.direct_queue.copy(fresh, staging, label="what will be written")
    return fresh


def _acquire(pool: Any, page: int, write: bool) -> int | None:
    """The frame; None where the pool refuses, which the judge knows to be right or wrong."""
    try:
        frame: int = pool.acquire(page, write)
    except PoolFull:
        return None
    return frame
