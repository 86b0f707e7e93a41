"""Lab 5: scripts of what is asked of a page pool, and the program that plays one. No model is in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import torch

from xinfer_lab.device.buffers import Buffer
from xinfer_lab.device.device import Device
from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.programs.calls import NotedPool
from xinfer_lab.grading.programs.page_shape import PageShape
from xinfer_lab.grading.values import BadData, Value
from xinfer_lab.paging.errors import PoolFull
from xinfer_lab.paging.parts_pool import PartsPool

__all__ = ["PAGE", "PoolScript", "acquired", "asked_ahead", "evicted", "play", "released", "written"]

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
    """

    frames: int
    pages: int
    ops: tuple[Op, ...]
    seed: int

    @classmethod
    def of(cls, inputs: Mapping[str, Value]) -> PoolScript:
        """The script that ``inputs`` describe. Raises `BadData` for anything else."""
        match dict(inputs):
            case {"frames": int(frames), "pages": int(pages), "ops": list(ops), "seed": int(seed)}:
                return cls(frames, pages, tuple((name, page) for name, page in ops), seed)
        raise BadData("a script has the fields frames, pages, ops and seed")

    def inputs(self) -> dict[str, Value]:
        """The script as the inputs of a case."""
        ops = [list(op) for op in self.ops]
        return {"frames": self.frames, "pages": self.pages, "ops": ops, "seed": self.seed}

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
        now = [self.bytes(f"page[{page}]").clone() for page in range(self.pages)]
        seen, puts = [], 0
        for op, page in self.ops:
            if op == "use":
                seen.append(now[page].clone())
            elif op == "put":
                start = self.put_at(puts)
                now[page][start : start + HALF] = self.bytes(f"written[{puts}]")
                puts += 1
        return seen, now

    @staticmethod
    def put_at(number: int) -> int:
        """The byte of its page that the ``number``-th ``put`` begins at."""
        return number % 2 * HALF

    # As a `ProgramCase`

    layers = 1

    @property
    def memory(self) -> int:
        """Frames, what is written, and what was seen."""
        return (self.frames + max(1, self.steps)) * PAGE + max(1, len(self.places("put"))) * HALF

    @property
    def steps(self) -> int:
        """Uses."""
        return len(self.places("use"))

    def weights(self) -> PoolScript:
        """The bytes: the script itself has them."""
        return self

    def nbytes(self, name: str) -> int | None:
        """Bytes of the source ``name``; None if there is none."""
        sizes = {f"page[{page}]": PAGE for page in range(self.pages)}
        sizes |= {f"written[{k}]": HALF for k in range(len(self.places("put")))}
        return sizes.get(name)

    def bytes(self, name: str) -> torch.Tensor:
        """The bytes of the source ``name``."""
        raw = Random(f"{self.seed} {name}").randbytes(self.nbytes(name) or 0)
        return torch.frombuffer(bytearray(raw), dtype=torch.uint8)

    def spec(self, ratio: float = 1.0) -> GpuSpec:
        """A GPU on which a page crosses the link in a millisecond, each way, and a use takes half of that."""
        return GpuSpec("a page a millisecond", 2**30, PAGE / 1e-3, 0.0, 1e12, 4 * PAGE / 1e-3, 0.0, 1e12)


def play(parts: Parts, inputs: Mapping[str, Value], open_device: Callable[..., Device]) -> None:
    """Play the script on a pool with ``parts``."""
    script = PoolScript.of(inputs)
    device = open_device(memory=script.memory)
    device.sources.mount(script)
    pool = PartsPool(device, frames=script.frames, pages=script.pages, page_bytes=PAGE, parts=parts)
    noted = NotedPool(device, pool)
    seen = device.create_buffer(max(1, script.steps) * PAGE, "seen")
    back = device.create_readback_heap(seen.size, "seen.back")
    fresh = _given(device, len(script.places("put")))
    for page in range(script.pages):
        pool.fill(page, f"page[{page}]")
    frames: dict[int, int] = {}
    uses = puts = 0
    for op, page in script.ops:
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


# Scripts


class _Writer:
    """Writes a script, and keeps count of who is acquired."""

    def __init__(self, random: Random, frames: int, pages: int) -> None:
        self.random, self.frames, self.pages = random, frames, pages
        self.names = random.sample(range(pages), pages)
        self.ops: list[Op] = []

    def do(self, *ops: str) -> None:
        """``"acquire 3"``: the page is the third of the drawn order."""
        for op in ops:
            verb, _, place = op.partition(" ")
            self.ops.append((verb, self.names[int(place)]))

    def case(self, what: str) -> Case:
        script = PoolScript(self.frames, self.pages, tuple(self.ops), self.random.randrange(2**31))
        return Case(f"{what}; {self.frames} frames, {self.pages} pages", script.inputs())


def _scan(random: Random, ahead: int) -> Case:
    """Pages in turn, each fetched ``ahead`` uses before its own: as layers are."""
    writer = _Writer(random, random.choice((3, 4)), random.randint(6, 7))
    uses = list(range(writer.pages)) * 2
    for place, page in enumerate(uses):
        writer.do(f"acquire {page}")
        writer.do(*(f"prefetch {next_}" for next_ in uses[place + 1 : place + 1 + ahead]))
        writer.do(f"use {page}", f"release {page}")
    return writer.case(f"pages in turn, {ahead} ahead")


def _choices(random: Random) -> Case:
    """Some pages at a time, fetched together and used one by one: as experts are. Some are used again soon, one is
    acquired twice, and some are fetched for nothing."""
    writer = _Writer(random, 4, random.randint(8, 9))
    # Fetched for nothing: what is fetched ahead does not take their frames, what is needed now does.
    writer.do(*(f"prefetch {page}" for page in range(2, 7)))
    for page in (6, 7):
        writer.do(f"acquire {page}", f"use {page}", f"release {page}")
    for _ in range(5):
        group = [*random.sample(range(2, writer.pages), 2), random.choice((0, 1))]
        random.shuffle(group)
        writer.do(*(f"prefetch {page}" for page in group))
        for page in group:
            writer.do(f"acquire {page}", f"use {page}", f"release {page}")
    # Held twice: after one release it is still in use, whatever comes.
    writer.do("acquire 0", "acquire 0", "use 0", "release 0")
    for page in random.sample(range(2, writer.pages), 5):
        writer.do(f"acquire {page}", f"use {page}", f"release {page}")
    writer.do("use 0", "release 0")
    return writer.case("a few pages at a time")


def _full(random: Random) -> Case:
    """Every frame is acquired: nothing may go, and then one page may."""
    writer = _Writer(random, random.choice((2, 3)), random.randint(5, 6))
    held = list(range(writer.frames))
    for page in held:
        writer.do(f"acquire {page}", f"use {page}")
    other, another = writer.frames, writer.frames + 1
    writer.do(f"prefetch {other}", f"acquire {other}", f"acquire {held[0]}", f"use {held[0]}")
    writer.do(f"release {held[0]}", f"prefetch {another}", f"acquire {another}", f"release {held[-1]}")
    writer.do(f"acquire {another}", f"use {another}", f"acquire {other}")
    writer.do(f"release {held[0]}", f"prefetch {other}", f"acquire {other}", f"use {other}")
    rest = [page for page in (*held[:-1], other, another) if page != held[0]]
    writer.do(*(f"release {page}" for page in rest))
    return writer.case("every frame acquired")


def _written(random: Random, again: int) -> Case:
    """Pages that are written and read in turn, as KV pages are; every ``again``-th is only read, and some come back
    right after they have left."""
    writer = _Writer(random, 3, random.randint(6, 7))
    # The page comes back at once, into another frame than it left; and another page comes into its frame at once.
    for page, verb in ((0, "acquire"), (1, "write"), (2, "write")):
        writer.do(f"{verb} {page}", *([f"put {page}"] if verb == "write" else []), f"use {page}", f"release {page}")
    writer.do("evict 1", "evict 0", "acquire 1", "use 1", "release 1", "evict 2", "evict 1", "acquire 3", "acquire 4")
    writer.do("acquire 2", "use 4", "use 3", "use 2", "release 3", "release 2", "release 4")
    for number, page in enumerate(list(range(writer.pages)) * 2):
        if number % again:
            writer.do(f"write {page}", f"put {page}")
            if random.random() < 0.5:
                writer.do(f"put {page}")
            writer.do(f"use {page}", f"release {page}")
        else:
            writer.do(f"acquire {page}", f"use {page}", f"release {page}")
        writer.do(f"prefetch {(page + 1) % writer.pages}")
    # Written, gone, and asked for again at once: its bytes have to be home first.
    for page in range(3):
        writer.do(f"write {page}", f"put {page}", f"release {page}")
    for page in (3, 4, 5):
        writer.do(f"acquire {page}", f"use {page}", f"release {page}", f"acquire {page - 3}", f"use {page - 3}")
        writer.do(f"release {page - 3}")
    return writer.case("pages written and read")


def _second_chances(random: Random) -> Case:
    """What the policy hears shows in who leaves: a page that is used when it has just come, one that is found again,
    and one that is fetched ahead although it is there, which is no use."""
    writer = _Writer(random, 3, random.randint(6, 7))

    def use(page: int) -> None:
        writer.do(f"acquire {page}", f"use {page}", f"release {page}")

    # The pages from the hand on, * is a mark: 0* 1* 2*, of which 1 is on its way.
    use(0)
    writer.do("prefetch 1")
    use(2)
    use(3)  # takes all marks, and 0 goes: 1 2 3*
    use(1)  # it has just come: 1* 2 3*
    use(4)  # takes the mark of 1, and 2 goes: 3* 1 4*
    use(1)  # found again: 3* 1* 4*
    use(5)  # takes all marks, and 3 goes: 1 4 5*
    writer.do("prefetch 1")  # it is there, and nobody uses it: as before
    use(0)  # 1 goes: 4 5* 0*
    for page in (4, 1, 5, 2):
        use(page)
    return writer.case("second chances")


def asked_ahead(random: Random) -> list[Case]:
    """For `prefetch`."""
    cases = [_scan(random, 1), _scan(random, 2), _choices(random), _full(random), _written(random, 3)]
    return [*cases, _second_chances(random)]


def acquired(random: Random) -> list[Case]:
    """For `acquire`."""
    return [_scan(random, 1), _choices(random), _full(random), _written(random, 3), _second_chances(random)]


def released(random: Random) -> list[Case]:
    """For `release`."""
    return [_scan(random, 2), _choices(random), _full(random), _written(random, 3)]


def evicted(random: Random) -> list[Case]:
    """For `evict`, as long as nothing is written."""
    return [_scan(random, 1), _choices(random), _full(random)]


def written(random: Random) -> list[Case]:
    """For `evict`, with pages that are written."""
    return [_written(random, 2), _written(random, 3), _choices(random)]
