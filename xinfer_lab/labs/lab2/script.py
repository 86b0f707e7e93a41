"""Lab 2: scripts of uploads through a staging ring, and the program that plays one. No model is in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random
from typing import Any

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import BufferRangeError
from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.grading.numbers import whole
from xinfer_lab.grading.piece import Case, Observed
from xinfer_lab.grading.programs.calls import NotedRing
from xinfer_lab.grading.raised import origin_of
from xinfer_lab.grading.values import BadData, Value

__all__ = ["UploadScript", "aligned_scripts", "ask_for_room", "play", "requests", "wrapping_scripts"]

BESIDE = " beside another"
UNIT = 256
"""Bytes. Every range starts at a multiple of this."""


@dataclass(frozen=True, slots=True)
class UploadScript:
    """Uploads through a ring of ``room`` bytes; each is a list of ranges in bytes, staged one by one and signalled
    together, upload k with ``values[k]``.

    ``patient``: the program waits for each upload before it goes on; otherwise the queue signals one value more before
    the ring is told. ``retires``: the program tells the ring after which fence value the ranges are free. The bytes of
    range j of upload k are named ``upload[k][j]`` and drawn from ``seed``.
    ``others``: the ring is not the only one. Another was closed before it, and one is played in turn with it.
    """

    room: int
    uploads: tuple[tuple[int, ...], ...]
    values: tuple[int, ...]
    patient: bool
    retires: bool
    seed: int
    others: bool = False

    @classmethod
    def of(cls, inputs: Mapping[str, Value]) -> UploadScript:
        """The script that ``inputs`` describe. Raises `BadData` for anything else."""
        match dict(inputs):
            case {
                "room": int(room),
                "uploads": list(uploads),
                "values": list(values),
                "patient": bool(patient),
                "retires": bool(retires),
                "seed": int(seed),
                "others": bool(others),
            }:
                listed = tuple(tuple(sizes) for sizes in uploads)
                return cls(room, listed, tuple(values), patient, retires, seed, others)
        raise BadData("a script has the fields room, uploads, values, patient, retires, seed and others")

    def inputs(self) -> dict[str, Value]:
        """The script as the inputs of a case."""
        return {
            "room": self.room,
            "uploads": [list(sizes) for sizes in self.uploads],
            "values": list(self.values),
            "patient": self.patient,
            "retires": self.retires,
            "seed": self.seed,
            "others": self.others,
        }

    @property
    def ranges(self) -> list[tuple[str, int]]:
        """Name and size of every range in order."""
        return [(f"upload[{k}][{j}]", size) for k, sizes in enumerate(self.uploads) for j, size in enumerate(sizes)]

    # As a `ProgramCase`

    memory = None
    layers = 1
    read_backs = ("seen",)

    @property
    def steps(self) -> int:
        """Uploads."""
        return len(self.uploads)

    def weights(self) -> UploadScript:
        """The bytes that are uploaded: the script itself has them."""
        return self

    def nbytes(self, name: str) -> int | None:
        """Bytes of the range ``name``; None if there is none."""
        return dict(self.ranges).get(name)

    def bytes(self, name: str) -> torch.Tensor:
        """The bytes of the range ``name``."""
        random = Random(f"{self.seed} {name}")
        return torch.frombuffer(bytearray(random.randbytes(dict(self.ranges)[name])), dtype=torch.uint8)

    def spec(self, ratio: float = 1.0) -> GpuSpec:
        """A GPU with a link that moves one byte in a microsecond, and a host that writes four."""
        return GpuSpec("a link of 1 MB/s", 2**30, 1e6, 0.0, 1e12, 1e12, 0.0, 4e6)


def play(ring_class: Any, inputs: Mapping[str, Value], open_device: Callable[..., Device]) -> None:
    """Play the script with a ring of the answer's: stage, copy on the copy queue, signal, and tell the ring."""
    script = UploadScript.of(inputs)
    beside = _others(ring_class, script) if script.others else iter(())
    next(beside, None)
    for _ in _played(ring_class, script, open_device()):
        next(beside, None)


def _others(ring_class: Any, script: UploadScript) -> Iterator[None]:
    """Rings of the same class on devices of their own: one that is closed before the first step, then an upload of
    a larger one at each, which is made after the script's own."""
    first = EmulatedDevice(check=False)
    ring, copied = ring_class(first, script.room), first.create_fence("copied")
    ring.allocate(UNIT)
    first.copy_queue.signal(copied, 1)
    ring.retire(copied, 1)
    copied.wait(1)
    ring.close()
    first.close()
    yield
    larger = replace(script, room=script.room + 4 * UNIT, seed=script.seed + 1)
    yield from _played(ring_class, larger, EmulatedDevice(check=False))


def _played(ring_class: Any, script: UploadScript, device: Device) -> Iterator[None]:
    """An upload of the script at each step."""
    device.sources.mount(script)
    target = device.create_buffer(max(size for _, size in script.ranges), "target")
    seen = device.create_readback_heap(1, "seen")
    ring = NotedRing(device, ring_class(device, script.room))
    copied, done = device.create_fence("copied"), device.create_fence("done")
    for k, sizes in enumerate(script.uploads):
        for j, size in enumerate(sizes):
            offset = ring.allocate(size)
            if (place := whole(offset)) is None:
                raise TypeError(f"allocate has to return an offset in bytes, an int, but returned {offset!r}")
            span = ring.heap.write(place, f"upload[{k}][{j}]")
            device.copy_queue.copy(target.span(0, size), span, label=f"upload {k}")
        device.copy_queue.signal(copied, script.values[k])
        if script.retires and not script.patient:
            device.copy_queue.signal(copied, script.values[k] + 1)  # the queue goes on with other things
        if script.retires:
            ring.retire(copied, script.values[k])
        if script.patient or k == len(script.uploads) - 1:
            device.copy_queue.copy(seen, target.span(0, 1))
            device.copy_queue.signal(done, k + 1)
            done.wait(k + 1)
            seen.read("uint8", (1,))
        yield
    device.close()


def _sizes(random: Random, count: int, most: int) -> list[int]:
    """Sizes: a multiple of 256, one byte more than one, one byte, and any."""
    multiples = [UNIT * random.randint(1, most // UNIT), UNIT * random.randint(1, most // UNIT - 1) + 1]
    sizes = [*multiples, 1, *(random.randint(1, most - 1) for _ in range(count - 3))]
    random.shuffle(sizes)
    return sizes


def aligned_scripts(random: Random) -> list[Case]:
    """Ranges of any size, never more than the ring holds."""
    cases = []
    for count, others in ((5, False), (random.randint(6, 9), True)):
        sizes = _sizes(random, count, 5 * UNIT)
        room = sum(_up(size) for size in sizes) + UNIT * random.randint(1, 3)
        uploads = tuple((size,) for size in sizes)
        script = UploadScript(room, uploads, tuple(range(1, count + 1)), True, False, random.randrange(2**31), others)
        told = f"a ring of {room} bytes{BESIDE if others else ''}, ranges of {', '.join(map(str, sizes))} bytes"
        cases.append(Case(told, script.inputs()))
    return cases


def _up(size: int) -> int:
    return -(-size // UNIT) * UNIT


def wrapping_scripts(*, patient: bool) -> Callable[[Random], list[Case]]:
    """Scripts that go round the ring a few times: once a range ends exactly at the ring's end, once one does not fit
    there, once one takes the whole ring."""

    def drawn(random: Random) -> list[Case]:
        shapes = ((8, 0, False), (random.randint(9, 14), 300, False), (random.randint(9, 14), 0, True))
        return [_wrapping(random, units, patient, base, others) for units, base, others in shapes]

    return drawn


def _wrapping(random: Random, units: int, patient: bool, base: int, others: bool) -> Case:
    """``base``: fence values begin above it, as those of a queue that has done other things before."""
    room = units * UNIT
    first = UNIT * random.randint(1, 2)
    head, laps = first, 0
    uploads: list[tuple[int, ...]] = [(first,)]
    while laps < 4:
        largest = max(2, units // 4)
        sizes = [random.randint(1, largest * UNIT) for _ in range(random.choice((1, 1, 2)))]
        left = room - head
        if laps == 1 and left <= largest * UNIT:
            sizes = [left - random.choice((0, 0, 100))]  # ends exactly where the ring ends
        elif laps == 2 and left <= largest * UNIT and left < room:
            sizes = [left + random.randint(1, UNIT)]  # a little too long for what is left
        elif laps == 3:
            sizes = [room]
        for size in sizes:
            if head + _up(size) > room:
                head = 0
                laps += 1
            head += _up(size)
            if head == room:
                head, laps = 0, laps + 1
        uploads.append(tuple(sizes))
    uploads += [(random.randint(1, UNIT),), (random.randint(1, UNIT),)]
    seed = random.randrange(2**31)
    steps = Random(seed)
    values = tuple(base + value for value in accumulate(steps.randint(2, 4) for _ in uploads))
    script = UploadScript(room, tuple(uploads), values, patient, True, seed, others)
    waits = ", each waited for" if patient else ""
    told = (
        f"a ring of {room} bytes{BESIDE if others else ''}, {len(uploads)} uploads{waits}, values from {values[0]} on"
    )
    return Case(told, script.inputs())


def requests(random: Random) -> list[Case]:
    """Requests to a new ring, one after the other, none of them retired; and whether the last one can be met."""
    units = random.randint(3, 9)
    room = units * UNIT
    half = units // 2 * UNIT
    listed: list[tuple[str, list[int]]] = [
        ("the whole ring", [room]),
        ("the whole ring but for a few bytes", [room - random.randint(1, UNIT - 1)]),
        ("one byte more than the ring has", [room + 1]),
        ("far more than the ring has", [room * random.randint(2, 9)]),
        ("more bytes than any machine has", [2**64 + random.randint(1, units) * UNIT]),
        ("a size that 32 bits would take for a small one", [2**32 + UNIT]),
        ("one byte", [1]),
        ("no bytes", [0]),
        ("less than no bytes", [-random.randint(1, 2 * UNIT)]),
        ("two ranges that fill the ring", [half, room - half]),
        (
            "one more when the ring is full of ranges that were never retired",
            [half, room - half, random.randint(1, UNIT)],
        ),
    ]
    small = random.randint(1, units // 3 * UNIT)  # three of them fit, so that a head that was moved shows
    goes_on = [
        ("one byte more than the ring has, then a range that fits", [half, room + 1, room - half], False),
        ("full; one more, and once more; and again when all were retired", [half, room - half, small, small], True),
    ]
    return [
        Case(f"a ring of {room} bytes, {name}", {"room": room, "sizes": sizes, "retired": None})
        for name, sizes in listed
    ] + [
        Case(f"a ring of {room} bytes, {name}", {"room": room, "sizes": sizes, "retired": retired})
        for name, sizes, retired in goes_on
    ]


def ask_for_room(ring_class: Any, inputs: Mapping[str, Value], observed: Observed) -> object:
    """The offsets that a new ring gives for the sizes in order.

    Where ``retired`` is not None the program goes on after a refusal, whose name stands in the list, and if it is true
    asks for the last size once more when the ranges have been retired; offsets are told as ``at 256``.
    """
    with EmulatedDevice(check=False) as device:
        ring, sizes = ring_class(device, inputs["room"]), inputs["sizes"]
        if inputs["retired"] is None:
            return [ring.allocate(size) for size in sizes]
        found = [_asked(ring, size) for size in sizes]
        if inputs["retired"]:
            copied = device.create_fence("copied")
            device.copy_queue.signal(copied, 1)
            ring.retire(copied, 1)
            found.append(_asked(ring, sizes[-1]))
        return found


def _asked(ring: Any, size: int) -> str:
    try:
        offset = ring.allocate(size)
    except BufferRangeError:
        return "BufferRangeError"
    except RuntimeError as error:
        # A stack that is full is a RuntimeError too, and no refusal.
        if not origin_of(error).refuses or isinstance(error, NotImplementedError):
            raise
        return "RuntimeError"
    place = whole(offset)
    return f"at {offset if place is None else place!r}"
