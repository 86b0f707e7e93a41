"""Mark one submission: transplant, record in the sandbox, verify apart, a verdict for each grade cell."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import TracebackType

from xinfer_lab.course.clean import plain
from xinfer_lab.course.explain import explain_end, explain_lack
from xinfer_lab.course.grade_cells import Check, GradeCell
from xinfer_lab.course.lab import Lab
from xinfer_lab.course.notebook import Notebook
from xinfer_lab.course.package_view import PACKAGE
from xinfer_lab.course.recorder_client import Answer, Recorder, Recording, RecordLimits
from xinfer_lab.course.sandbox import Sandbox
from xinfer_lab.course.steps import Ask, Run, Step, steps_of
from xinfer_lab.course.transplant import Transplant, transplant
from xinfer_lab.course.verdict import Marking, Status, Verdict
from xinfer_lab.course.verifier_client import Drawn, Trusted
from xinfer_lab.grading.check import VISIBLE
from xinfer_lab.grading.report import Report

__all__ = ["Marker", "fresh_seed", "seeds_of", "stream_digest"]


def fresh_seed(piece: str) -> int:
    """A seed for ``piece`` that nobody can guess."""
    return secrets.randbits(32)


def seeds_of(secret: str) -> Callable[[str], int]:
    """Seeds by piece that nobody can guess who does not know ``secret``: the same in every process that knows it."""
    return lambda piece: int.from_bytes(sha256(f"{secret} {piece}".encode()).digest()[:4])


_WHERE = re.compile(r'"where": (?:"(?:[^"\\]|\\.)*"|null|\[[^\]]*\])')


def stream_digest(data: object) -> str:
    """A digest of the command streams in the recording ``data``, without the source lines that issued them; '' where
    there are none.
    """
    text = json.dumps(data, sort_keys=True)
    return sha256(_WHERE.sub("", text).encode()).hexdigest()[:16] if '"stream"' in text else ""


class Marker:
    """Marks submissions, one after another, with one trusted process for all and new recording processes for each.

    Cases that nobody has seen are drawn once for a marker: every submission that it marks is asked the same. A context
    manager; `close` ends its process and removes its files.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        limits: RecordLimits | None = None,
        *,
        package: Path = PACKAGE,
        seed_of: Callable[[str], int] = fresh_seed,
    ) -> None:
        self.sandbox, self.package = sandbox, package
        self.budget = (limits or RecordLimits()).budget
        self._seed_of = seed_of
        self._trusted = Trusted(package)
        self._recorder = Recorder(sandbox, limits, package)
        self._seeds: dict[str, int] = {}
        self._drawn: dict[tuple[str, int], Drawn] = {}

    def __enter__(self) -> Marker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End what runs and remove what was written."""
        self._trusted.close()
        self._recorder.close()

    def mark(self, lab: Lab, submitted: Notebook, notes: Sequence[str] = (), *, until: float | None = None) -> Marking:
        """The marking of ``submitted``; ``notes`` are put before those on the notebook itself. What is not marked when
        `time.monotonic` comes to ``until`` earns nothing; by default the limits' budget counts from now. Raises
        `MarkingError`.
        """
        return self.mark_transplant(lab, transplant(lab.released, submitted), notes, until=until)

    def mark_transplant(
        self, lab: Lab, notebook: Transplant, notes: Sequence[str] = (), *, until: float | None = None
    ) -> Marking:
        """The marking of a notebook that is transplanted already."""
        until = time.monotonic() + self.budget if until is None else until
        steps = steps_of(notebook.cells, {graded.grade_id: graded for graded in lab.graded})
        asked = {
            (step.place, number): check
            for step in steps
            if isinstance(step, Ask)
            for number, check in enumerate(step.graded.checks)
        }
        drawn = {key: self._draw(check) for key, check in asked.items()}
        recording = self._recorder.record(steps, drawn, until)
        places = {step.graded.grade_id: step.place for step in steps if isinstance(step, Ask)}
        verdicts = [
            self._verdict(graded, places.get(graded.grade_id), steps, drawn, recording, until) for graded in lab.graded
        ]
        printed = {place: cell.printed for place, cell in recording.cells.items()}
        # The visible cases are the same for everybody, in every run.
        streams = {
            check.piece: digest
            for key, check in asked.items()
            if check.seed == VISIBLE and (digest := stream_digest(recording.answers[key].data))
        }
        return Marking(tuple(verdicts), (*map(plain, notes), *notebook.notes), notebook, printed, streams)

    def _seed(self, check: Check) -> int:
        if check.seed is not None:
            return check.seed
        if check.piece not in self._seeds:
            self._seeds[check.piece] = self._seed_of(check.piece)
        return self._seeds[check.piece]

    def _draw(self, check: Check) -> Drawn:
        key = check.piece, self._seed(check)
        if key not in self._drawn:
            self._drawn[key] = self._trusted.draw(*key)
        return self._drawn[key]

    def _verdict(
        self,
        graded: GradeCell,
        place: int | None,
        steps: Sequence[Step],
        drawn: Mapping[tuple[int, int], Drawn],
        recording: Recording,
        until: float,
    ) -> Verdict:
        if graded.by_hand:
            return Verdict(graded.grade_id, graded.points, Status.BY_HAND)
        seeds = tuple((check.piece, self._seed(check)) for check in graded.checks)
        status, report = Status.MISSING, Report(graded.grade_id, False, "This check was not reached.")
        if place is not None:
            before = [step for step in steps if isinstance(step, Run) and step.place < place]
            for number, check in enumerate(graded.checks):
                key = place, number
                status, report = self._judge(check, recording.answers[key], drawn[key], before, recording, until)
                if status is not Status.PASSED:
                    break
        return Verdict(graded.grade_id, graded.points, status, report, seeds)

    def _judge(
        self, check: Check, answer: Answer, drawn: Drawn, before: Sequence[Run], recording: Recording, until: float
    ) -> tuple[Status, Report]:
        if answer.ended is not None:
            return explain_end(check, answer.ended)
        if answer.lacks is not None:
            return explain_lack(check, answer.lacks, before, recording)
        report = self._trusted.verify(check.piece, drawn.cases, answer.data, until)
        if report.passed:
            return Status.PASSED, report
        return (Status.TIMED_OUT if _timed_out(answer.data) else Status.FAILED), report


def _timed_out(data: object) -> bool:
    """Whether a failed answer failed because its last case came to no end."""
    match data:
        case {"outcomes": [*_, {"raised": {"type": "AnswerTimeout"}}]}:
            return True
    return False
