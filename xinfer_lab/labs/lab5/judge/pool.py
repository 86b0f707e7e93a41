"""Lab 5: the judges of what a page pool submits, and of the gate."""

from __future__ import annotations

from collections.abc import Mapping

from xinfer_lab.device.records import Copy, HostRead, HostWrite
from xinfer_lab.grading.choices import PREDICTION
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.grading.programs.verify_program import Named, ProgramJudge
from xinfer_lab.grading.verify_values import Judge
from xinfer_lab.labs.lab5.judge.copy_ideas import EVICT_IDEAS, PREFETCH_IDEAS
from xinfer_lab.labs.lab5.judge.expected import nothing_beside_the_pool
from xinfer_lab.labs.lab5.judge.gate import GATE
from xinfer_lab.labs.lab5.judge.leaves import leaves_by_clock
from xinfer_lab.labs.lab5.judge.page_races import ARRIVED, EMPTIED, HOME, LAST_USE, WRITER
from xinfer_lab.labs.lab5.judge.page_rules import fetched_ahead
from xinfer_lab.labs.lab5.judge.rules import MOVES, WAITS
from xinfer_lab.labs.lab5.judge.signs import BLAME
from xinfer_lab.labs.lab5.judge.use_ideas import ACQUIRE_IDEAS, RELEASE_IDEAS
from xinfer_lab.labs.lab5.pages import pages_of
from xinfer_lab.labs.lab5.script import PoolScript

__all__ = ["JUDGES"]

SCHEDULES = ("copies_last", "timed", "copies_first", "random(1)")
"""Orders in which a script is run again; a long one in the first alone."""
LONG = 1500
"""Commands of a long script."""


def as_asked(evidence: Evidence) -> Fault | None:
    """The recording is of the script: its bytes, its calls, its uses in order, and a look at every page in the end."""
    script: PoolScript = evidence.case
    given = script.weights()
    for index, record in enumerate(evidence.stream):
        if isinstance(record, HostWrite) and (
            record.source.size != given.nbytes(record.source.name) or record.source.name in evidence.stream.inputs
        ):
            return Fault("inputs", f"The source {record.source.name!r} is none of the script's.", records=(index,))
    calls = [(call.name, call.page) for call in pages_of(evidence).calls]
    wanted, reads = script.calls, script.steps + script.pages
    asked, rest = calls[: len(wanted)], calls[len(wanted) :]
    seen = sum(isinstance(record, HostRead) for record in evidence.stream)
    bounds = [bound for call in evidence.calls for bound in (call.begin, call.end)]
    evicts = all(name == "evict" for name, _ in rest) and len(rest) == len(set(rest)) <= script.frames
    if asked == wanted and evicts and seen == reads and bounds == sorted(bounds):
        return _uses_as_asked(evidence)
    return Fault(
        "incomplete",
        "The recording is not of what was asked.",
        expected=f"{len(wanted)} calls and {reads} reads by the host",
        got=f"{len(calls)} calls, {seen} reads",
        show=False,
    )


def _uses_as_asked(evidence: Evidence) -> Fault | None:
    script: PoolScript = evidence.case
    wanted = [(op == "put", page) for op, page in script.ops if op in ("use", "put")]
    if len(pages_of(evidence).uses) != len(wanted):
        return Fault("incomplete", "The direct queue uses other pages than the script does.", show=False)
    for use, (writes, page) in zip(pages_of(evidence).uses, wanted, strict=True):
        if use.queue != "direct" or use.writes != writes:
            return Fault("incomplete", "The direct queue uses pages in another way than the script does.", show=False)
        if use.page != page:
            return Fault(
                "wrong-page",
                f"Page {page} is used, and its frame holds {'nothing' if use.page is None else f'page {use.page}'}.",
                expected=f"page {page} in frame {use.frame}",
                got="no copy has come there" if use.page is None else f"page {use.page}",
                records=(use.record,) if use.fetched is None else (use.fetched, use.record),
            )
    return None


def right_bytes(evidence: Evidence) -> Fault | None:
    """In each of several orders the direct queue sees what the script has, and so does the host in the end."""
    script: PoolScript = evidence.case
    seen, home = script.contents()
    for schedule in SCHEDULES[: 1 if len(evidence.stream) > LONG else None]:
        found = [raw for _, raw in evidence.replay(schedule).reads]
        for number, (want, got) in enumerate(zip([*seen, *home], found, strict=False)):
            if got.equal(want):
                continue
            if number < len(seen):
                what = f"Use {number}, of page {script.places('use')[number]}, sees other bytes"
            else:
                what = f"Page {number - len(seen)} is not home in the end as it was written last"
            return Fault(
                "bytes",
                f"{what}, in the order {schedule!r}.",
                expected="the bytes that the page had, with all that was written to it",
                got=f"{int((got != want).sum())} of {want.numel()} bytes differ"
                if got.numel() == want.numel()
                else f"{got.numel()} bytes",
            )
    return None


def no_other_copies(evidence: Evidence) -> Fault | None:
    """What the host looks at was copied there by the program around the answer, straight from frames."""
    uses = {use.record for use in pages_of(evidence).uses}
    for index, record in enumerate(evidence.stream):
        if not isinstance(record, Copy):
            continue
        strange = record.dst.buffer == "seen" and index not in uses
        if strange or (record.dst.buffer == "seen.back" and record.src.buffer != "seen"):
            return Fault("stranger", "Other bytes than a frame's are shown to the host.", records=(index,), show=False)
    return None


_HOST = {"host-blocks": "host", "host-sleeps": "host"}
_CALLS = {"raised:AttributeError": "calls_only"}


def _judge(passed: str, part: str, ideas: tuple[Named, ...], named: Mapping[str, str]) -> ProgramJudge:
    blame = {kind: part for kind in BLAME} | {"raised:": part, "submits": part}
    return ProgramJudge(
        (*MOVES, *WAITS, as_asked, no_other_copies, leaves_by_clock, right_bytes, nothing_beside_the_pool),
        passed,
        ideas,
        blame,
        PoolScript.of,
        (*MOVES, *WAITS[:2], fetched_ahead),
        named={**named, **_CALLS},
    )


JUDGES: dict[str, Judge | ProgramJudge] = {
    "lab5.predict_wait": PREDICTION,
    "lab5.prefetch": _judge(
        "Pages are copied ahead, into frames that nobody uses any more.",
        "prefetch",
        PREFETCH_IDEAS,
        {
            "brought-twice": "there",
            "submits": "there",
            "victim": "policy",
            "submits-full": "no_room",
            "part": "whole",
            "queue": "copy_queue",
            "in-use": "given_frame",
            "wrong-frame": "given_frame",
            "wrong-home": "given_frame",
            "on-demand": "now",
            "raised:ValueError": "now",
            LAST_USE: "last_use",
            EMPTIED: "emptied",
            HOME: "returned",
            "hazard:self-wait": "copy_queue_waits",
            "direct-waits": "copy_queue_waits",
            "no-overlap": "no_more",
            "signals:": "one_signal",
            "raised:EarlyWait": "one_signal",
            ARRIVED: "behind",
            "raised:FenceError": "own_value",
            "never-signalled": "noted",
            "raised:PageError": "bind",
            "wrong-answer:True": "ahead",
            "wrong-answer:False": "room",
            "raised:TypeError": "says",
            **_HOST,
        },
    ),
    "lab5.acquire": _judge(
        "Nobody reads a page before it is there, and no page leaves while it is read.",
        "acquire",
        ACQUIRE_IDEAS,
        {
            "refused": "fetches",
            "raised:AnswerTimeout": "pool_full",
            "not-refused": "pool_full",
            ARRIVED: "waits",
            "hazard:self-wait": "direct_queue",
            "no-overlap": "no_more",
            "submits": "nothing_there",
            "signals:": "nothing_there",
            "in-use": "counted",
            "raised:PageError": "counted",
            "dropped": "dirty",
            "saved-clean": "only_then",
            "victim": "used",
            "wrong-frame": "returns",
            "raised:TypeError": "returns",
            "raised:BufferRangeError": "returns",
            **_HOST,
        },
    ),
    "lab5.release": _judge(
        "A page may go once the direct queue is done with it.",
        "release",
        RELEASE_IDEAS,
        {
            "raised:EarlyWait": "signals",
            "signals:": "once",
            "raised:FenceError": "own_value",
            "hazard:wrong-signaller": "direct_queue",
            LAST_USE: "noted",
            WRITER: "noted",
            "no-overlap": "no_more",
            "in-use": "one_less",
            "raised:TypeError": "one_less",
            "brought-twice": "stays",
            "raised:ValueError": "stays",
            "victim": "stays",
            "waits-early": "nobody_waits",
            **{kind: "nobody_waits" for kind in _HOST},
        },
    ),
    "lab5.evict": _judge(
        "A page that nobody wrote gives its frame up, and nothing is copied home.",
        "evict",
        EVICT_IDEAS,
        {
            "saved-clean": "clean",
            "submits-clean": "clean",
            "raised:TypeError": "returns",
            "raised:PageError": "told",
        },
    ),
    "lab5.write_back": _judge(
        "What was written goes home before its frame is used again.",
        "evict",
        EVICT_IDEAS,
        {
            "dropped": "home",
            "queue": "write_back_queue",
            WRITER: "last_use",
            "no-overlap:released": "no_later",
            "no-overlap:saved": "notes_stay",
            "signals:": "one_signal",
            "raised:FenceError": "own_value",
            EMPTIED: "emptied",
            HOME: "returned",
            "raised:PageError": "mark_clean",
            "hazard:self-wait": "nobody_else",
            **_HOST,
        },
    ),
    "lab5.gate": GATE,
}
