"""The trusted process, seen from outside: draws cases, verifies recordings, survives what they do to it."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xinfer_lab.course.clean import plain, plain_data
from xinfer_lab.course.package_view import PACKAGE
from xinfer_lab.course.supervised import Ended, Limits, Supervised
from xinfer_lab.grading.report import Report

__all__ = ["Drawn", "Killed", "MarkingError", "Trusted"]

LIMITS = Limits(memory=6 * 2**30, processes=8)
START_CPU = 60.0
"""Seconds of processor time, on top, for the first request: it may have to import torch."""


class MarkingError(RuntimeError):
    """Marking itself does not work, whatever was handed in."""


class Killed(MarkingError):
    """Something outside, as where memory runs out, killed a process of marking; this says nothing of an answer."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Cases of a piece as JSON, the modules that are denied to its answer, and the processor time that one case may
    take.
    """

    cases: list[Any]
    denied: frozenset[str]
    cpu_seconds: float


class Trusted:
    """Starts the process when it is needed and again when it is gone. ``package``: the folder of the package that it
    runs.
    """

    def __init__(self, package: Path = PACKAGE, verify_cpu: float = 120.0) -> None:
        self._package, self._verify_cpu = package, verify_cpu
        self._process: Supervised | None = None

    def draw(self, piece: str, seed: int) -> Drawn:
        """The cases of ``piece`` for ``seed``. Raises `MarkingError`."""
        answer = self._ask({"draw": piece, "seed": seed})
        if isinstance(answer, Ended) or "cases" not in answer:
            words = f"{answer.words}\n{answer.stderr}" if isinstance(answer, Ended) else answer.get("refused")
            raise MarkingError(f"no cases could be drawn for {piece}: {words}")
        return Drawn(answer["cases"], frozenset(answer["denied"]), answer["cpu_seconds"])

    def verify(self, piece: str, cases: list[Any], data: object, until: float = math.inf) -> Report:
        """The report on ``data``. A recording that breaks or hangs the process is a failed one, and one that is not
        judged when `time.monotonic` comes to ``until``.
        """
        answer = self._ask({"verify": piece, "cases": cases, "data": data}, until)
        if isinstance(answer, Ended):
            return Report(piece, False, f"What this answer did could not be verified: {answer.words}.")
        if "report" not in answer:
            why = plain(str(answer.get("refused")))
            return Report(piece, False, f"What this answer did could not be verified: {why}.")
        return Report.from_dict(plain_data(answer["report"]))

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _ask(self, request: dict[str, Any], until: float = math.inf) -> Any:
        cpu = self._verify_cpu
        if self._process is None:
            cpu += START_CPU
            paths = [str(self._package.parent), os.environ.get("PYTHONPATH", "")]
            env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
            env |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
            command = [sys.executable, "-P", "-m", "xinfer_lab.course.verifier_process"]
            self._process = Supervised(command, env=env, cwd=self._package.parent, limits=LIMITS)
        self._process.send(request)
        answer = self._process.receive(cpu, until)
        if isinstance(answer, Ended):
            self._process = None
            if answer.cause == "killed":
                raise Killed(answer.words)
        return answer
