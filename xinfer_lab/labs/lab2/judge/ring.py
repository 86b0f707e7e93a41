"""Lab 2: the judges of the staging ring, and the wrong ideas behind faults in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xinfer_lab.device.records import Allocate, Copy, HostWait, HostWrite, Signal
from xinfer_lab.grading.programs import run_rules as rules
from xinfer_lab.grading.programs.call_rules import in_a_call
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.grading.programs.verify_program import Named, ProgramJudge
from xinfer_lab.labs.lab2.judge.fences import RETURN_IDEAS
from xinfer_lab.labs.lab2.judge.staging_rules import pins, waits_for_room_only
from xinfer_lab.labs.lab2.script import UNIT, UploadScript

__all__ = ["ALIGNMENT", "RING_BLAME", "RING_MISCONCEPTIONS", "WAIT", "WRAP", "places"]


def places(room: int, sizes: list[int]) -> list[int]:
    """Where each range starts: behind the one before, at 0 again where it would go over the end."""
    found, head = [], 0
    for size in sizes:
        taken = -(-size // UNIT) * UNIT
        start = head if head + taken <= room else 0
        found.append(start)
        head = start + taken
    return found


def _writes(evidence: Evidence) -> list[tuple[int, HostWrite]]:
    return [(index, record) for index, record in enumerate(evidence.stream) if isinstance(record, HostWrite)]


def in_its_place(evidence: Evidence) -> Fault | None:
    """Every range starts where the ring has it: aligned, behind the one before or at 0."""
    script: UploadScript = evidence.case
    wanted = places(script.room, [size for _, size in script.ranges])
    for number, ((index, write), start) in enumerate(zip(_writes(evidence), wanted, strict=False)):
        if write.dst.offset == start:
            continue
        got = write.dst.offset
        before = (
            f", behind {write.dst.buffer}[{wanted[number - 1]}:{wanted[number - 1] + script.ranges[number - 1][1]}]"
            if number
            else ""
        )
        aligned = got % UNIT == 0
        return Fault(
            "place" if aligned else "alignment",
            f"Range {number} starts in the wrong place."
            if aligned
            else f"Range {number} starts at no multiple of {UNIT}.",
            expected=f"allocate({write.dst.size}) == {start}{before}",
            got=f"{got}" + ("" if aligned else f" = {got // UNIT} x {UNIT} + {got % UNIT}"),
            records=(index,),
        )
    return None


def whole_script(evidence: Evidence) -> Fault | None:
    """Every range of the script is staged once, in order, and copied from where it was staged."""
    script: UploadScript = evidence.case
    staged = [(write.source.name, write.dst.size) for _, write in _writes(evidence)]
    copied = [record.src for record in evidence.stream if isinstance(record, Copy) and record.dst.buffer == "target"]
    if staged == script.ranges and copied == [write.dst for _, write in _writes(evidence)]:
        return None
    return Fault(
        "incomplete",
        "Other bytes are staged or copied than the script has.",
        expected=f"{len(script.ranges)} ranges, each staged and copied once",
        got=f"{len(staged)} staged, {len(copied)} copied",
        show=False,
    )


def _waits(evidence: Evidence, until: int | None = None) -> list[HostWait]:
    records = list(evidence.stream)[:until]
    return [record for record in records if isinstance(record, HostWait) and record.fence.startswith("copied")]


def _newest(evidence: Evidence, index: int) -> int:
    fence = getattr(evidence.stream[index], "fence", "copied")
    values = [r.value for r in list(evidence.stream)[:index] if isinstance(r, Signal) and r.fence == fence]
    return max(values, default=0)


def _waits_for_untold(evidence: Evidence) -> bool:
    """Whether one of the host's waits is for a value that retire was not told, and that is not the newest either."""
    return isinstance(evidence.case, UploadScript) and any(
        record.value not in (*evidence.case.values, _newest(evidence, index))
        for index, record in enumerate(evidence.stream)
        if isinstance(record, HostWait) and record.fence == "copied"
    )


def _told_last(evidence: Evidence, index: int) -> int:
    """The newest value that ``retire`` was told before record ``index``."""
    told = [call.values[0] for call in evidence.calls if call.name == "retire" and call.begin <= index and call.values]
    return max((value for value in told if isinstance(value, int)), default=0)


def _waited_value(evidence: Evidence, fault: Fault) -> int:
    record = evidence.stream[fault.records[0]]
    return record.value if isinstance(record, HostWait) else 0


def _over_the_end(evidence: Evidence, fault: Fault) -> bool:
    return fault.kind == "raised:BufferRangeError" and "cannot be written" in fault.got


def _always_zero(evidence: Evidence, fault: Fault) -> bool:
    writes = _writes(evidence)
    return fault.kind == "place" and len(writes) > 1 and all(write.dst.offset == 0 for _, write in writes)


def _just_fits(evidence: Evidence, fault: Fault) -> bool:
    write = evidence.stream[fault.records[0]] if fault.records else None
    if fault.kind != "place" or not isinstance(write, HostWrite) or write.dst.offset != 0:
        return False
    number = next(n for n, (index, _) in enumerate(_writes(evidence)) if index == fault.records[0])
    script: UploadScript = evidence.case
    start = places(script.room, [size for _, size in script.ranges])[number]
    return start + -(-write.dst.size // UNIT) * UNIT == script.room


def _as_if_rounded(evidence: Evidence, fault: Fault, rounded: Callable[[int], int]) -> bool:
    """Whether the ranges begin as they would if each size were ``rounded`` so: all of them, or in a script that goes
    round the ring those up to the one that the fault is about."""
    if fault.kind != "place":
        return False
    last = max(fault.records) if evidence.case.retires else len(evidence.stream)
    starts = [write.dst.offset for index, write in _writes(evidence) if index <= last]
    head, expected = 0, []
    for _, size in evidence.case.ranges[: len(starts)]:
        expected.append(head)
        head += rounded(size)
    return len(starts) > 1 and starts == expected


def _one_too_many(evidence: Evidence, fault: Fault) -> bool:
    return _as_if_rounded(evidence, fault, lambda size: (size // UNIT + 1) * UNIT)


def _refused(evidence: Evidence, fault: Fault) -> bool:
    """Whether the ring itself says that the room is taken; not what broke in it."""
    return fault.kind == "raised:RuntimeError" and evidence.raised is not None and evidence.raised.refuses


def _not_in_the_way(evidence: Evidence, fault: Fault) -> bool:
    """Whether the ring refused because of a range that is in use, and that the new one does not overlap."""
    if not _refused(evidence, fault) or not isinstance(evidence.case, UploadScript):
        return False
    used: list[tuple[int, int]] = []
    for call in evidence.calls:
        if call.name == "retire":
            used = []
        elif len(call.values) == 3 and isinstance(call.values[1], int) and isinstance(call.values[2], int):
            used.append((call.values[1], call.values[1] + call.values[2]))
    number, sizes = len(_writes(evidence)), [size for _, size in evidence.case.ranges]
    if not used or number >= len(sizes):
        return False
    start = places(evidence.case.room, sizes)[number]
    return not any(low < start + sizes[number] and start < high for low, high in used)


def _only_touches(evidence: Evidence, fault: Fault) -> bool:
    """Whether the ring refused a range that has no byte in common with any before it."""
    if not _refused(evidence, fault) or not isinstance(evidence.case, UploadScript):
        return False
    script, number = evidence.case, len(_writes(evidence))
    if number >= len(script.ranges):
        return False
    sizes = [size for _, size in script.ranges]
    starts = places(script.room, sizes)
    start, end = starts[number], starts[number] + sizes[number]
    return not any(starts[n] < end and start < starts[n] + sizes[n] for n in range(number))


RING_MISCONCEPTIONS = (
    *RETURN_IDEAS,
    Named(
        "A queue waits, and the host has to",
        "It is the host that writes into the range next: fence.wait(value) blocks the host, queue.wait(fence, value) a "
        "queue.",
        lambda evidence, fault: fault.kind == "hazard:self-wait" and in_a_call(evidence, "allocate", fault.records[0]),
    ),
    Named(
        "A heap for each upload",
        "Then there is no room to wait for, but all host memory that was ever staged stays pinned. One heap, used "
        "round and round.",
        lambda evidence, fault: (
            fault.kind == "pinned" and sum(isinstance(r, Allocate) and r.heap == "upload" for r in evidence.stream) > 1
        ),
    ),
    Named(
        "A range runs over the end",
        "A range is one piece: a copy cannot go on at the beginning. If it does not fit before the end, it starts at "
        "0 and the rest "
        "of the ring stays unused in this round.",
        _over_the_end,
    ),
    Named(
        "Always from the start",
        "Every range at 0 needs no ring, but then each upload has to wait for the one before.",
        _always_zero,
    ),
    Named(
        "Sizes are not rounded up",
        f"If ranges follow each other byte by byte, the next one starts anywhere. Round each size up to a multiple "
        f"of {UNIT}.",
        lambda evidence, fault: fault.kind == "alignment",
    ),
    Named(
        "A range that just fits is sent to the start",
        "A range may end exactly where the ring ends: start + size <= ring size.",
        _just_fits,
    ),
    Named(
        "Sizes are rounded down",
        f"size // {UNIT} * {UNIT} leaves the last bytes out, and the next range begins within this one. Round up.",
        lambda evidence, fault: _as_if_rounded(evidence, fault, lambda size: size // UNIT * UNIT),
    ),
    Named(
        "Another alignment",
        f"Every range starts at the next multiple of {UNIT}, and not at one of a larger unit: that leaves room unused.",
        lambda evidence, fault: any(
            _as_if_rounded(evidence, fault, lambda size, unit=unit: -(-size // unit) * unit)  # type: ignore[misc]
            for unit in (2 * UNIT, 4 * UNIT)
        ),
    ),
    Named(
        "A whole unit too much",
        f"A size that is a multiple of {UNIT} already needs no rounding: -(-size // {UNIT}) * {UNIT}.",
        _one_too_many,
    ),
    Named(
        "Nobody waits before memory is used again",
        "Submitted is not copied. The copy takes what is in the heap when it runs, and by then the host has written "
        "the next bytes there.",
        lambda evidence, fault: fault.kind == "hazard:host-write" and not _waits(evidence, fault.records[0]),
    ),
    Named(
        "The host waits, but not for the copy that still reads here",
        "Each range is free at its own fence value. Wait for the values of all ranges that the new one overlaps, and "
        "for no smaller ones.",
        lambda evidence, fault: fault.kind == "hazard:host-write",
    ),
    Named(
        "Another value than retire was told",
        "The value that retire is told is the one after which the ranges are free. By then the fence may have been "
        "signalled with later ones, for other things.",
        lambda evidence, fault: (
            fault.kind == "waits-too-long"
            and isinstance(evidence.case, UploadScript)
            and _waits_for_untold(evidence)
            and _waited_value(evidence, fault) not in evidence.case.values
        ),
    ),
    Named(
        "Waits for the newest fence value",
        "That empties the queue: nothing is on its way while the host stages. Wait for the value of the range that "
        "is in the way.",
        lambda evidence, fault: (
            fault.kind == "waits-too-long"
            and _waited_value(evidence, fault)
            in (_newest(evidence, fault.records[0]), _told_last(evidence, fault.records[0]))
        ),
    ),
    Named(
        "Waits although there is room",
        "The host has to wait only where the new range overlaps one that is still in use. Otherwise it goes on at "
        "once.",
        lambda evidence, fault: fault.kind == "host-waits",
    ),
    Named(
        "Waits for more than what is in the way",
        "Take the oldest ranges away one by one, and stop as soon as none of those left overlaps the new one.",
        lambda evidence, fault: fault.kind == "waits-too-long",
    ),
    Named(
        "Sees an overlap where there is none",
        "A range that ends where another one begins has no byte in common with it: [a, b) and [c, d) overlap if a < "
        "d and c < b.",
        _only_touches,
    ),
    Named(
        "A range is looked at that is not in the way",
        "The new range overlaps none of those that were not retired yet. Take the oldest ranges away one by one, and "
        "stop as soon as none of those left overlaps the new one.",
        _not_in_the_way,
    ),
    Named(
        "Ranges are not given free",
        "retire says after which value all ranges since the last call are free. Note it with every one of them.",
        _refused,
    ),
)

RING_BLAME = {
    "hazard:host-write": "allocate",
    "place": "allocate",
    "alignment": "allocate",
    "host-waits": "allocate",
    "pinned": "__init__",
}

_PLACED = (in_its_place,)


def _judge(passed: str, named: Mapping[str, str], *more: rules.Rule) -> ProgramJudge:
    asked = (in_its_place, whole_script, pins(lambda evidence: int(evidence.case.room)), *more)
    return ProgramJudge(
        asked, passed, RING_MISCONCEPTIONS, RING_BLAME, UploadScript.of, _PLACED, {**named, "pinned": "pins"}
    )


ALIGNMENT = _judge(
    f"Every range starts at a multiple of {UNIT}, right behind the one before.",
    {"alignment": "aligned", "place": "behind"},
)
WRAP = _judge(
    "No range runs over the end: it starts at 0 again.", {"place": "wraps", "raised:BufferRangeError": "wraps"}
)
WAIT = _judge(
    "No byte is overwritten before it was copied, and the host never waits longer than that takes.",
    {
        "hazard:host-write": "waits",
        "hazard:self-wait": "host",
        "waits-too-long": "no_longer",
        "host-waits": "only_for_room",
        "host-sleeps": "only_for_room",
        "raised:RuntimeError": "free",
    },
    rules.no_hazard,
    waits_for_room_only,
)
