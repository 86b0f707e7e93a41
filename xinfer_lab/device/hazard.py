"""A hazard, and how it is told: for people, in the order in which they ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xinfer_lab.device.journal import MissingEdge, Moment
from xinfer_lab.device.record_words import (
    edge_lines,
    join_plain,
    lane_name,
    picture,
    plain,
    source_lines,
    source_text,
)
from xinfer_lab.device.records import Copy, Dispatch, Free, HostWait, Record, Span, Transition, Wait, queue_of

__all__ = ["HAZARD_KINDS", "Hazard"]

HAZARD_KINDS = (
    "read-after-write",
    "write-after-read",
    "write-after-write",
    "host-write",
    "host-read",
    "use-after-free",
    "self-wait",
    "early-wait",
)
"""Races between queues; a host write into bytes that a queue still uses; a host read before its fence; a buffer freed
while it is used, or used when freed; a wait on a fence that the same queue signals; a wait for a value that no queue
was asked to signal yet."""


_TITLES = {
    "read-after-write": "read after write",
    "write-after-read": "write after read",
    "write-after-write": "write after write",
    "host-write": "host write races a queue",
    "host-read": "host read before its fence",
    "use-after-free": "use after free",
    "self-wait": "wait on one's own queue",
    "early-wait": "early wait",
}

_EFFECTS = {
    "read-after-write": "{second} may start before the bytes are there: it works on what {buffer} held before.",
    "write-after-read": "{second} may replace the bytes while {first} reads them, which then works on a mixture.",
    "write-after-write": "Either may come last: what {buffer} holds afterwards is left to chance.",
    "host-write": "The host changes the bytes at once; {first} may run later and take the new bytes for the old ones.",
    "host-read": "The host may see what {buffer} held before, or a mixture: {first} has perhaps not run yet.",
    "use-after-free": "The memory may belong to somebody else when it is used: wrong numbers, NaN, or a lost device.",
    "self-wait": "A queue works in order, so its own signal is over by then: the wait orders nothing between queues.",
    "early-wait": "An event that was never recorded cannot be waited for: on a GPU with events the wait does nothing.",
}


@dataclass(frozen=True, slots=True)
class Hazard:
    """Records ``first`` and ``second`` (indices; ``first <= second``) race on the bytes of ``span``.

    ``kind`` is one of `HAZARD_KINDS`. For a self-wait, ``first`` is the signal waited for; for an early wait it is the
    wait itself; both have no span. ``missing`` is None where no edge would help. ``moment`` holds the records around.
    """

    kind: str
    first: int
    second: int
    span: Span | None
    first_record: Record
    second_record: Record
    missing: MissingEdge | None
    moment: Moment = ()

    @property
    def headline(self) -> str:
        """One line: what races with what, and where."""
        return _headline(self)

    def report(self, text_of: Callable[[str], str] = source_text) -> str:
        """The whole report: both source lines, the missing signal or wait, the consequence, and a picture.

        ``text_of(where)`` gives the text of a source line, '' if there is none. The default reads the file that the
        record names; pass another one for a stream from elsewhere, whose file names cannot be trusted.
        """
        return _report(self, text_of)

    def __str__(self) -> str:
        return self.report()


def _actor(record: Record) -> str:
    match record:
        case Dispatch():
            return f"{record.kernel} on {lane_name(record.queue)}"
        case Copy():
            return f"the copy on {lane_name(record.queue)}"
        case Transition():
            return f"the barrier on {lane_name(record.queue)}"
        case _:
            return lane_name(queue_of(record))


def _use(record: Record, span: Span | None) -> str:
    if isinstance(record, Copy) and span is not None:
        return "writing" if record.dst.overlaps(span) else "reading"
    return "using"


def _headline(hazard: Hazard) -> str:
    """One line: the kind, who races with whom, and on which bytes."""
    first, second, span = hazard.first_record, hazard.second_record, hazard.span
    one, two = _actor(first), _actor(second)
    match hazard.kind:
        case "read-after-write":
            what = f"{two} reads {span} while {one} may still be writing it"
        case "write-after-read":
            what = f"{two} overwrites {span} while {one} may still be reading it"
        case "write-after-write":
            what = f"{two} writes {span} while {one} may still be writing it"
        case "host-write":
            what = f"the host writes {span} while {one} may still be {_use(first, span)} it"
        case "host-read":
            what = f"the host reads {span} before {one} has surely written it"
        case "use-after-free" if isinstance(first, Free):
            what = f"{two} uses {span or first.buffer}, but {first.buffer} was freed in record {hazard.first}"
        case "use-after-free":
            what = f"the host gives {_buffer(hazard)} back while {one} may still be {_use(first, span)} it"
        case "self-wait":
            what = f"{two} waits for {_awaited(second)}, which it signals itself in record {hazard.first}"
        case _:
            what = f"{two} waits for {_awaited(second)}, which nothing issued before it signals"
    return plain(f"{_TITLES[hazard.kind]}: {what}")


def _awaited(record: Record) -> str:
    return f"{record.fence} >= {record.value}" if isinstance(record, (Wait, HostWait)) else ""


def _buffer(hazard: Hazard) -> str:
    if hazard.span is not None:
        return hazard.span.buffer
    return getattr(hazard.second_record, "buffer", "the buffer")


def _remedy(hazard: Hazard) -> list[str]:
    """What is missing, and what to write where."""
    missing, before = hazard.missing, f"before record {hazard.second}"
    if hazard.kind == "self-wait":
        return [
            "  missing  the wait belongs to the queue that uses the result, not to the one that signals",
            "  mend     let the other queue wait for this value before it uses what was written",
        ]
    if hazard.kind == "early-wait" and missing is not None:
        reached = f"signalled up to {missing.reached} so far" if missing.reached else "never signalled so far"
        return [
            f"  missing  a signal of {missing.fence} with {missing.value} or more {before}; it was {reached}",
            "  mend     issue the signal first, then the wait; or wait for a value that was asked for already",
        ]
    if missing is None:
        return [
            "  missing  no signal and no wait: the buffer was gone already",
            f"  mend     free it after record {hazard.second}, or allocate it again {before}",
        ]
    return edge_lines(missing, hazard.first, before)


def _report(hazard: Hazard, text_of: Callable[[str], str]) -> str:
    """The whole report of ``hazard``; the same text for the same stream. ``text_of`` gives a source line's text."""
    one, two = _actor(hazard.first_record), _actor(hazard.second_record)
    lines = [_headline(hazard)]
    marks = {hazard.first: "<== first", hazard.second: "<== second"}
    if hazard.first == hazard.second:
        marks = {hazard.second: "<== here"}
    else:
        lines += source_lines("first", hazard.first, hazard.first_record, text_of)
    lines += source_lines("second" if len(marks) == 2 else "here", hazard.second, hazard.second_record, text_of)
    lines += _remedy(hazard)
    effect = _EFFECTS[hazard.kind].format(first=one, second=two, buffer=_buffer(hazard))
    # A kernel's name at the beginning stays as it is.
    lines.append(f"  effect   {'The' + effect[3:] if effect.startswith('the ') else effect}")
    hole = hazard.second if hazard.kind not in ("self-wait", "early-wait") else -1
    lines += ["", *picture(hazard.moment, marks, hazard.missing, hole)]
    return join_plain(lines)
