"""Judges a recorded queue program on the trusted side: the recording is untrusted, the truth is computed here."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from xinfer_lab.device.device import KERNELS
from xinfer_lab.device.errors import DeviceError, StreamError
from xinfer_lab.device.records import HOST, Allocate
from xinfer_lab.device.simulated import simulate
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.device.stream_rules import StreamRules
from xinfer_lab.device.timeline import Timeline
from xinfer_lab.grading.envelope import MAX_RECORDS, Raised, read_line, read_outcomes, read_raised
from xinfer_lab.grading.piece import Case, cases_from_data, cases_to_data
from xinfer_lab.grading.programs.calls import read_calls
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.grading.programs.model_case import ModelCase, ProgramCase
from xinfer_lab.grading.programs.run_rules import Rule
from xinfer_lab.grading.report import TOO_LONG, Drawing, Misconception, Report
from xinfer_lab.grading.values import BadData, Value

__all__ = ["Named", "ProgramJudge", "first_fault", "read_evidence", "verify_program"]

MAX_BUFFER_BYTES = 2**26
"""A stream may ask for no more host and device memory than this, all its buffers together."""


@dataclass(frozen=True, slots=True)
class Named:
    """A misconception by name: it is the likely cause when ``explains(evidence, fault)``.

    ``instead_of_hint``: what it says takes the place of the fault's own hint, which would send elsewhere.
    """

    name: str
    explanation: str
    explains: Callable[[Evidence, Fault], bool]
    instead_of_hint: bool = False


@dataclass(frozen=True, slots=True)
class ProgramJudge:
    """What is asked of a queue program: ``rules`` in order, the first fault is told; ``misconceptions`` that may
    explain it.

    ``blame`` maps the beginning of a fault's kind to the function of the answer where the remedy belongs: its line is
    shown when none of the student's lines issued the records of the fault (a line that is missing has issued nothing).
    ``case`` makes a case of the inputs of the program's cases (raising `BadData`). ``early`` are the rules that can be
    asked of a run that broke off, too: what they find says more than the exception that it led to. ``passed`` is what
    a right answer is told; a function of all its cases where that depends on how they were run. ``named`` maps the
    beginning of a fault's kind to the rule of the text that is broken then (see `xinfer_lab.grading.ledger`).
    """

    rules: tuple[Rule, ...]
    passed: str | Callable[[Sequence[Evidence]], str]
    misconceptions: tuple[Named, ...] = ()
    blame: Mapping[str, str] = field(default_factory=dict)
    case: Callable[[Mapping[str, Value]], ProgramCase] = ModelCase.of
    early: tuple[Rule, ...] = ()
    named: Mapping[str, str] = field(default_factory=dict)

    @property
    def told(self) -> tuple[str, ...]:
        """The names of the rules that it looks at."""
        return tuple(dict.fromkeys(self.named.values()))

    def rule_of(self, kind: str) -> str:
        """The name of the rule that a fault of ``kind`` breaks, by its longest known beginning; '' if none is known."""
        known = [prefix for prefix in self.named if kind.startswith(prefix)]
        return self.named[max(known, key=len)] if known else ""

    def blamed(self, kind: str) -> str:
        """The function where the remedy of a fault of ``kind`` belongs, or ''."""
        return next((name for prefix, name in self.blame.items() if kind.startswith(prefix)), "")


def verify_program(piece: str, judge: ProgramJudge, cases: Sequence[Case], data: object) -> Report:
    """The report on ``data`` for ``cases``: the first fault of the first case that has one."""
    try:
        outcomes, defined = read_outcomes(piece, cases, data)
        found = [read_evidence(judge, case, outcome) for case, outcome in zip(cases, outcomes, strict=False)]
    except (BadData, StreamError) as error:
        return Report(piece, False, f"The recording of this answer cannot be read: {error}.")
    for number, (case, evidence) in enumerate(zip(cases, found, strict=False)):
        fault = first_fault(judge, evidence)
        if fault is not None:
            report = _report(piece, judge, case, evidence, fault, defined, len(found))
            alone = number == 0 or not getattr(evidence.case, "others", False)
            return report if alone else replace(report, misconception=_SHARED, hint=None)
    if not cases or len(found) < len(cases):
        return Report(piece, False, f"{len(found)} of {len(cases)} cases were recorded, so there is nothing to pass.")
    told = judge.passed if isinstance(judge.passed, str) else judge.passed(found)
    return Report(piece, True, told, checked=len(cases))


_SHARED = Misconception(
    "Two objects share their books",
    "Alone your class passed; here a second object of it is at work, and one was closed before. What an object counts "
    "and remembers belongs on self, set in __init__: not in the class, a global or a default argument.",
)


def first_fault(judge: ProgramJudge, evidence: Evidence) -> Fault | None:
    """The fault that a student is told of a run; None if nothing is wrong with it."""
    return _raised_fault(judge, evidence) or _first_fault(judge.rules, evidence)


def read_evidence(judge: ProgramJudge, case: Case, outcome: Mapping[str, Any]) -> Evidence:
    """What is known of one case of a recording, which is untrusted input. Raises `BadData` or `StreamError`.

    Pieces that judge the same run by other rules, as those of a race do, get the same object: its hazards and replays
    are worked out once.
    """
    try:
        return _evidence(judge.case, _content(case, outcome))
    except RecursionError:
        raise BadData("the recording is nested too deeply") from None


def _content(case: Case, outcome: Mapping[str, Any]) -> bytes:
    told: Any = (cases_to_data([case]), outcome)
    try:
        return marshal.dumps(told, _PLAIN)
    except ValueError:
        raise BadData("the recording is nested too deeply") from None


_PLAIN = 2
"""The version of marshal's format in which equal values have equal bytes, whichever objects hold them."""


@lru_cache(maxsize=8)
def _evidence(make: Callable[[Mapping[str, Value]], ProgramCase], content: bytes) -> Evidence:
    cases, outcome = marshal.loads(content)
    asked = make(cases_from_data(cases)[0].inputs)
    fields = {"stream", "lines", "methods", "calls", "sleeps", "goes_on", "raised", "line"}
    if not {"line"} <= set(outcome) <= fields:
        raise BadData(f"an outcome of a queue program has no fields but {', '.join(sorted(fields))}")
    raised = None
    if "raised" in outcome:
        raised = read_raised(outcome["raised"], outcome["line"])
    stream, lines = outcome.get("stream"), outcome.get("lines", {})
    if stream is None:
        return Evidence(asked, CommandStream(), raised or Raised("nothing", (), "nothing was recorded", ()))
    if not isinstance(stream, dict) or not isinstance(stream.get("records"), list):
        raise BadData("a stream is an object with records")
    if len(stream["records"]) > MAX_RECORDS:
        raise BadData(f"the stream has {len(stream['records'])} records; at most {MAX_RECORDS} are looked at")
    if not isinstance(lines, dict) or not all(
        isinstance(key, str) and isinstance(text, str) and len(text) <= 400 and key.startswith("your line ")
        for key, text in lines.items()
    ):
        raise BadData("the lines of a stream are texts by place")
    methods = outcome.get("methods", {})
    if not isinstance(methods, dict) or len(methods) > 100 or not all(isinstance(name, str) for name in methods):
        raise BadData("the methods of an answer are lines by name")
    begins = {name: read_line(line) or "" for name, line in methods.items()}
    decoded = CommandStream.from_dict(stream)
    if sum(record.size for record in decoded if isinstance(record, Allocate)) > MAX_BUFFER_BYTES:
        raise BadData(f"the stream allocates more than {MAX_BUFFER_BYTES} bytes")
    sleeps = outcome.get("sleeps", [])
    if not isinstance(sleeps, list) or not all(type(index) is int for index in sleeps):
        raise BadData("the sleeps of an answer are a list of numbers of records")
    calls = read_calls(outcome.get("calls", []))
    return Evidence(asked, decoded, raised, lines, begins, calls, tuple(sleeps), outcome.get("goes_on") is True)


def _first_fault(rules: Sequence[Rule], evidence: Evidence) -> Fault | None:
    admitted = StreamRules(KERNELS)
    try:
        # No rule has to expect a stream that no device would have taken.
        for record in evidence.stream:
            admitted.queues.add(getattr(record, "queue", HOST))
            admitted.admit(record)
        for rule in rules:
            if (fault := rule(evidence)) is not None:
                return fault
    except DeviceError as error:
        return Fault("inadmissible", f"The stream cannot be run: {type(error).__name__}.", got=str(error), show=False)
    return None


_RAISED = {
    "NotImplementedError": ("It is not filled in yet.", "Replace the line that raises it."),
    "AnswerTimeout": TOO_LONG,
    "NotAllowed": ("It uses a module that no answer may use.", ""),
    "DeniedModule": (
        "It uses a module that holds the answer.",
        "Write this part yourself; the module is closed while the piece is graded.",
    ),
    "EarlyWait": (
        "It waits for a fence value that nobody was asked to signal.",
        "Submit the signal first, then the wait.",
    ),
    "FenceError": (
        "It signals a fence as no fence can be signalled.",
        "A fence has one signalling queue, and its values only grow.",
    ),
    "OutOfDeviceMemory": (
        "It asks for more device memory than there is.",
        "Refill the slots instead of adding to them.",
    ),
}


def _raised_fault(judge: ProgramJudge, evidence: Evidence) -> Fault | None:
    if evidence.raised is None:
        return None
    kind, message = evidence.raised.unanswered or evidence.raised.type, evidence.raised.message
    if not evidence.raised.unanswered and (earlier := _first_fault(judge.early, evidence)) is not None:
        return earlier
    headline, hint = _RAISED.get(kind, (f"It raised {kind}.", ""))
    if kind == "FenceError" and "nothing to wait for" in message:
        headline, hint = "It waits for a value that no fence can have.", ""
    if kind == "AnswerTimeout" and evidence.goes_on and len(evidence.program.computes) < evidence.steps:
        return _slow(evidence, message)
    if "another device" in message:
        headline, hint = "It uses what belongs to another device.", ""
    last = (len(evidence.stream) - 1,) if len(evidence.stream) else ()
    return Fault(
        f"raised:{kind}", headline, expected="a run to its end", got=message, records=last, hint=hint, show=False
    )


def _slow(evidence: Evidence, message: str) -> Fault:
    """An answer that was stopped while it was getting on: it may be right, and takes too long."""
    done, steps = len(evidence.program.computes), evidence.steps
    return Fault(
        "too-slow",
        f"It is too slow: it was stopped with {done} of {steps} layers computed.",
        expected="commands and work that grow with the number of steps, or somewhat faster",
        got=message,
        hint="Look for what each step does once more for all steps before it.",
        show=False,
    )


def _report(
    piece: str, judge: ProgramJudge, case: Case, evidence: Evidence, fault: Fault, defined: str | None, checked: int
) -> Report:
    named = next((one for one in judge.misconceptions if one.explains(evidence, fault)), None)
    raised_line = evidence.raised.line if evidence.raised else None
    return Report(
        piece,
        False,
        fault.headline,
        where=case.label,
        expected=fault.expected or None,
        got=_got(evidence, fault) or None,
        line=((raised_line or _called_last(evidence)) if fault.kind.startswith("raised:") else None)
        or evidence.line_of(*fault.records)
        or evidence.methods.get(judge.blamed(fault.kind))
        or raised_line
        or defined,
        misconception=Misconception(named.name, named.explanation) if named else None,
        hint=None if named and named.instead_of_hint else fault.hint or None,
        picture=_picture(evidence, fault) if fault.show else None,
        checked=checked,
    )


def _got(evidence: Evidence, fault: Fault) -> str:
    broke = evidence.raised
    if broke is None or not fault.kind.startswith("raised:") or broke.unanswered:
        return fault.got
    return f"{fault.got} (raised by {broke.raiser})"


def _called_last(evidence: Evidence) -> str | None:
    """Where the method begins that was called last: what was raised after it returned is owed to what it returned."""
    return evidence.methods.get(evidence.calls[-1].name) if evidence.calls else None


def _window(timeline: Timeline, begin: float, steps: int, records: set[int]) -> tuple[float, float]:
    """The first steps from ``begin`` on; later ones where the last of ``records`` comes later."""
    length = (timeline.duration - begin) * min(1.0, 14 / max(1, steps))
    last = max((event.end for event in timeline.events if event.record in records), default=begin)
    if last <= begin + length:
        return begin, min(timeline.duration, begin + length)
    end = min(timeline.duration, last + length / 10)
    return end - length, end


def _picture(evidence: Evidence, fault: Fault) -> Drawing | None:
    from xinfer_lab.views.timeline_svg import timeline_svg
    from xinfer_lab.views.timeline_text import timeline_text

    if not len(evidence.stream):
        return None
    timeline = simulate(evidence.stream, evidence.case.spec(), KERNELS)
    begin = next((event.start for event in timeline.events if event.record >= evidence.first_pass), 0.0)
    if timeline.duration <= begin:
        return None
    begin, end = _window(timeline, begin, evidence.steps, set(fault.records))
    hazards = [h for h in evidence.findings.hazards if {h.first, h.second} <= set(fault.records)][:1]
    picture = timeline_svg(
        timeline, title="Your schedule, where it fails", hazards=hazards, start=begin, end=end, budget=None
    )
    return Drawing(picture.svg, picture.alt, timeline_text(timeline))
