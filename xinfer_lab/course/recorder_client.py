"""Runs the recorder over a student's cells until every answer is recorded or known to be out of reach."""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from xinfer_lab.course.clean import plain
from xinfer_lab.course.package_view import PACKAGE, elsewhere, make_view, other_libraries
from xinfer_lab.course.sandbox import Sandbox
from xinfer_lab.course.steps import Run, Step
from xinfer_lab.course.supervised import OUTSIDE, Ended, Limits, Supervised
from xinfer_lab.course.verifier_client import Drawn, Killed, MarkingError
from xinfer_lab.grading.piece import unlabelled

__all__ = ["Answer", "CellRun", "RecordLimits", "Recorder", "Recording"]

START_CPU = 60.0
MOST_ENDS = 12
"""How often a submission may end its process; after that its remaining answers count as lost."""


@dataclass(frozen=True, slots=True)
class RecordLimits:
    """What a submission may take. Seconds of processor time: ``cell`` for one cell, ``case`` for one case (None: what
    the piece says), ``total`` for one process. ``slack`` lies between the limit inside the process, which tells the
    line, and the one that ends the process. ``budget``: seconds on the clock for a whole submission, many times what a
    right one takes on a loaded machine, so that none holds a worker.
    """

    process: Limits = field(default_factory=Limits)
    cell: float = 30.0
    case: float | None = None
    total: int = 900
    slack: float = 3.0
    budget: float = 900.0


@dataclass(frozen=True, slots=True)
class CellRun:
    """The outcome of a cell: what it printed, the exception that stopped it, or how it ended the process."""

    printed: str = ""
    error: Mapping[str, Any] | None = None
    ended: Ended | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one check: recorded ``data``, or what it ``lacks``, or how the process ``ended`` on it."""

    data: Any = None
    lacks: Mapping[str, Any] | None = None
    ended: Ended | None = None


@dataclass(frozen=True, slots=True)
class Recording:
    """Cells by their place; answers by the place of the grade cell and the number of the check in it."""

    cells: dict[int, CellRun]
    answers: dict[tuple[int, int], Answer]


class Recorder:
    """Records submissions in ``sandbox``. Keeps copies of the package without what is denied; `close` removes them."""

    def __init__(self, sandbox: Sandbox, limits: RecordLimits | None = None, package: Path = PACKAGE) -> None:
        self._sandbox, self._limits, self._package = sandbox, limits or RecordLimits(), package
        self._folder = tempfile.TemporaryDirectory(prefix="xinfer-lab-", ignore_cleanup_errors=True)
        os.chmod(self._folder.name, 0o755)  # it holds no secret, and the recorder may be another user
        self._views: dict[frozenset[str], Path] = {}

    def close(self) -> None:
        """Remove the copies."""
        self._folder.cleanup()

    def record(
        self, steps: Sequence[Step], drawn: Mapping[tuple[int, int], Drawn], until: float = math.inf
    ) -> Recording:
        """Run ``steps`` in a process of its own for each set of denied modules; ``drawn`` are the cases of each
        check. What is not recorded when `time.monotonic` comes to ``until`` is lost.
        """
        recording = Recording({}, {})
        groups: dict[frozenset[str], list[tuple[int, int]]] = {}
        for key, cases in drawn.items():
            groups.setdefault(cases.denied, []).append(key)
        for denied, keys in groups.items():
            self._record(steps, {key: drawn[key] for key in keys}, denied, recording, until)
        return recording

    def _record(
        self,
        steps: Sequence[Step],
        drawn: Mapping[tuple[int, int], Drawn],
        denied: frozenset[str],
        recording: Recording,
        until: float,
    ) -> None:
        ended_on: set[int] = set()
        for _ in range(MOST_ENDS):
            left = [key for key in drawn if key not in recording.answers]
            if not left:
                return
            ended = self._run(_plan(steps, left, ended_on), drawn, denied, recording, until)
            if isinstance(ended, int):
                ended_on.add(ended)
        for key in drawn:
            words = f"its notebook ended the process {MOST_ENDS} times"
            recording.answers.setdefault(key, Answer(ended=Ended("exit", words)))

    def _run(
        self,
        plan: Sequence[Run | tuple[int, int, str, str]],
        drawn: Mapping[tuple[int, int], Drawn],
        denied: frozenset[str],
        recording: Recording,
        until: float,
    ) -> int | None:
        """Run one process over ``plan``; the place of the cell that ended it, or None."""
        with tempfile.TemporaryDirectory(prefix="xinfer-lab-run-", ignore_cleanup_errors=True) as scratch:
            if self._sandbox.drop:
                os.chmod(scratch, 0o777)  # nobody knows yet which user the process becomes
            process = self._start(Path(scratch), denied)
            try:
                process.send(self._request(plan, drawn, denied))
                return self._listen(process, plan, drawn, recording, until)
            finally:
                process.stop()

    def _listen(
        self,
        process: Supervised,
        plan: Sequence[Run | tuple[int, int, str, str]],
        drawn: Mapping[tuple[int, int], Drawn],
        recording: Recording,
        until: float,
    ) -> int | None:
        at: int | None = None
        cpu, itself = START_CPU, False
        asked: set[int] = set()
        while True:
            event = process.receive(cpu, until)
            if isinstance(event, Ended):
                if event.cause == "killed":
                    if not itself:
                        raise Killed(event.words)
                    event = replace(event, cause="exit", words="the process ended by signal 9")
                return self._blame(event, at, plan, recording)
            kind, number = next(iter(event.items())) if isinstance(event, dict) and event else ("", None)
            if kind == "kills":
                itself = True
            if kind == "done":
                # The process says so itself; what it left out on the way is lost.
                _lose_rest(plan, recording)
                return None
            if kind == "ready":
                cpu, at = START_CPU, 0
            elif type(number) is int and 0 <= number < len(plan):
                step, at = plan[number], number
                if isinstance(step, Run):
                    cpu = self._limits.cell + self._limits.slack
                    if kind == "ran":
                        recording.cells.setdefault(step.place, _cell_run(event))
                else:
                    cpu = (self._limits.case or drawn[step[:2]].cpu_seconds) + self._limits.slack
                    if kind == "asks" and number not in asked:
                        asked.add(number)
                        process.send(unlabelled(drawn[step[:2]].cases))
                    elif kind == "ended":
                        words = plain(str(event.get("words"))[:200])
                        if words.endswith("by signal 9") and not itself:
                            raise Killed(OUTSIDE)
                        ended = Ended("exit", words)
                        recording.answers.setdefault(step[:2], Answer(ended=ended))
                    elif kind == "recorded":
                        recording.answers.setdefault(step[:2], Answer(data=event.get("data")))
                    elif kind == "lacks":
                        recording.answers.setdefault(step[:2], Answer(lacks=_lack(event)))

    def _blame(
        self, ended: Ended, at: int | None, plan: Sequence[Run | tuple[int, int, str, str]], recording: Recording
    ) -> int | None:
        if ended.cause == "budget":
            _lose_rest(plan, recording, ended)
            return None
        if at is None:
            raise MarkingError(f"the recorder does not start: {ended.words}\n{ended.stderr}")
        step = plan[at]
        if isinstance(step, Run):
            known = recording.cells.get(step.place, CellRun())
            recording.cells[step.place] = replace(known, ended=ended)
            return step.place
        if (
            step[:2] in recording.answers
        ):  # it ended after this answer was complete: the next cannot be reached this way
            _lose_rest(plan, recording, ended)
        recording.answers.setdefault(step[:2], Answer(ended=ended))
        return None

    def _start(self, scratch: Path, denied: frozenset[str]) -> Supervised:
        if denied not in self._views:
            self._views[denied] = make_view(denied, Path(self._folder.name) / f"view-{len(self._views)}", self._package)
        view = self._views[denied].parent
        hidden = (self._package, *elsewhere(denied, self._package), *other_libraries())
        command = self._sandbox.command(view, "xinfer_lab.course.recorder_process", hidden=hidden)
        environment = self._sandbox.environment(view, scratch)
        return Supervised(command, env=environment, cwd=scratch, limits=self._limits.process)

    def _request(
        self,
        plan: Sequence[Run | tuple[int, int, str, str]],
        drawn: Mapping[tuple[int, int], Drawn],
        denied: frozenset[str],
    ) -> dict[str, Any]:
        steps = [
            {"source": step.source} if isinstance(step, Run) else {"piece": step[2], "expression": step[3]}
            for step in plan
        ]
        return {
            "steps": steps,
            "pieces": sorted({step[2] for step in plan if not isinstance(step, Run)}),
            "denied": sorted(denied),
            "cell_cpu": self._limits.cell,
            "cpu_seconds": self._limits.case,
            "confine": {
                "drop": self._sandbox.drop,
                "cpu": self._limits.total,
                "memory": self._limits.process.memory,
                "threads": 0 if self._sandbox.drop else _threads_of_user(),
            },
        }


def _plan(
    steps: Sequence[Step], left: Sequence[tuple[int, int]], ended_on: set[int]
) -> list[Run | tuple[int, int, str, str]]:
    """What one process has to do: the cells, without those that ended one, and the checks that are ``left``; no cell
    after the last.
    """
    plan: list[Run | tuple[int, int, str, str]] = []
    length = 0
    for step in steps:
        if isinstance(step, Run):
            if step.place not in ended_on:
                plan.append(step)
            continue
        for number, check in enumerate(step.graded.checks):
            if (step.place, number) in left:
                plan.append((step.place, number, check.piece, check.expression))
                length = len(plan)
    return plan[:length]


def _lose_rest(
    plan: Sequence[Run | tuple[int, int, str, str]], recording: Recording, ended: Ended | None = None
) -> None:
    why = ended or Ended("exit", "the process ended without recording this answer")
    for step in plan:
        if not isinstance(step, Run):
            recording.answers.setdefault(step[:2], Answer(ended=why))


def _cell_run(event: Mapping[str, Any]) -> CellRun:
    printed, error = event.get("printed"), event.get("error")
    return CellRun(plain(printed[:30_000]) if isinstance(printed, str) else "", _told(error))


def _lack(event: Mapping[str, Any]) -> dict[str, Any]:
    name, denied = event.get("name"), event.get("denied")
    return {
        "error": _told(event.get("error")) or {"type": "Exception", "message": "", "line": None},
        "name": plain(name[:100]) if isinstance(name, str) else None,
        "denied": plain(denied[:300]) if isinstance(denied, str) else None,
    }


def _told(error: object) -> dict[str, Any] | None:
    """An exception as the student's side tells it; shown, never believed."""
    if not isinstance(error, Mapping):
        return None
    line = error.get("line")
    return {
        "type": plain(str(error.get("type"))[:100]),
        "message": plain(str(error.get("message"))[:1000]),
        "line": line if type(line) is int else None,
    }


def _threads_of_user() -> int:
    """Threads that this user runs now: its limit of processes counts them all."""
    if sys.platform != "linux":
        return 0
    user, count = os.getuid(), 0
    for process in psutil.process_iter():
        try:
            if process.uids().real == user:
                count += process.num_threads()
        except psutil.Error:
            continue
    return count
