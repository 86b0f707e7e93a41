"""`ProgramPiece`: a piece answered by a queue program, and how it is recorded. Knows nothing of what is right."""

from __future__ import annotations

import linecache
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.gpu_spec import GPU_SPECS, GpuSpec
from xinfer_lab.device.records import Dispatch, Record
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.device.stream import CommandStream, record_to_dict
from xinfer_lab.grading.envelope import MAX_BETWEEN, MAX_RECORDS
from xinfer_lab.grading.guard import AnswerTimeout
from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.programs.verify_program import verify_program
from xinfer_lab.grading.record_values import recording
from xinfer_lab.grading.report import Report
from xinfer_lab.grading.sleeping import on_sleep
from xinfer_lab.grading.student_line import PACKAGE, STANDARD, methods_of
from xinfer_lab.grading.values import Value

__all__ = ["ProgramPiece", "Runner"]

Runner = Callable[[Any, Mapping[str, Value], Callable[..., Device]], None]
"""Runs an answer on one case: ``run(answer, inputs, open_device)``; ``open_device(**options)`` opens the emulated
device to use. ``open_device(computes=False)`` opens one of sizes: for a long run whose numbers nobody compares.
"""


MAX_SLEEPS = 100
"""Sleeps that a recording holds: one is enough to see that the host sleeps."""


@dataclass(frozen=True, slots=True)
class ProgramPiece:
    """A piece answered by functions or classes that drive queues, judged by the command stream that they issue.

    ``run`` plugs the answer into the parts around it and runs one case. The judge of the same name in
    its lab's ``judge/judges.py`` knows what is right.
    """

    name: str
    points: int
    cases: Callable[[Random], list[Case]]
    run: Runner
    denied_modules: tuple[str, ...] = ()
    cpu_seconds: float = field(default=20.0)

    def draw(self, seed: int) -> list[Case]:
        """The cases for ``seed``."""
        return self.cases(Random(f"{self.name} {seed}"))

    def record(self, answer: object, cases: Sequence[Case]) -> dict[str, Any]:
        """The stream that ``answer`` issues on each of ``cases``, and what it raised, as plain JSON."""
        return recording(self, answer, cases, self._record_case)

    def verify(self, cases: Sequence[Case], data: object) -> Report:
        """The report on ``data``, by the judge in its lab's ``judge/judges.py``."""
        # Imported here: where an answer is recorded, this module exists and the judges do not.
        from xinfer_lab.grading.judges import judge_of

        return verify_program(self.name, judge_of(self.name), cases, data)

    def _record_case(self, answer: object, inputs: Mapping[str, Value], note: dict[str, Any]) -> None:
        devices: list[_Recorder] = []

        def open_device(*, computes: bool = True, **options: Any) -> Device:
            device = _Emulated(check=False, **options) if computes else _Sized(_SPEC, check=False, **options)
            devices.append(device)
            return device

        def slept() -> None:
            if devices:
                devices[0].sleeps.append(len(devices[0].stream))

        try:
            with on_sleep(answer, slept):
                self.run(answer, inputs, open_device)
        finally:
            # First: what is done below takes time that is not the program's.
            note["goes_on"] = bool(devices) and devices[0].goes_on()
            stream = devices[0].stream if devices else CommandStream()
            note["stream"], note["lines"] = _portable(stream)
            note["calls"] = devices[0].calls if devices else []
            note["sleeps"] = devices[0].sleeps[:MAX_SLEEPS] if devices else []
            note["methods"] = {name: asdict(line) for name, line in methods_of(answer).items()}


_SPEC = GPU_SPECS["laptop"]


class _Recorder(Device):
    """Stops a program that submits commands without end, long before the time limit would, and keeps `noted` calls,
    and when the host slept."""

    def __init__(self, *spec: GpuSpec, **options: Any) -> None:
        super().__init__(*spec, **options)
        self.calls: list[dict[str, Any]] = []
        self.sleeps: list[int] = []
        self._kernel = 0
        self._began = self._latest = time.process_time()

    def submit(self, *records: Record) -> torch.Tensor | None:
        count = len(self.stream) + len(records)
        if count - self._kernel > MAX_BETWEEN:
            raise AnswerTimeout(f"stopped after {MAX_BETWEEN:,} commands without a kernel among them")
        if count > MAX_RECORDS:
            raise AnswerTimeout(f"stopped after {MAX_RECORDS:,} commands")
        return super().submit(*records)

    def _note(self, record: Record, need: int) -> None:
        super()._note(record, need)
        if isinstance(record, Dispatch):
            self._kernel, self._latest = len(self.stream), time.process_time()

    def goes_on(self) -> bool:
        """Whether the program is getting on: since its latest kernel not a quarter of its time has passed."""
        now = time.process_time()
        return now - self._latest < (now - self._began) / 4


class _Emulated(_Recorder, EmulatedDevice):
    """Computes."""


class _Sized(_Recorder, SimulatedDevice):
    """Computes nothing: it takes half as long."""


def _portable(stream: CommandStream) -> tuple[dict[str, Any], dict[str, str]]:
    """The stream with source lines that mean something elsewhere, and the text of the student's own lines."""
    names: dict[str, str] = {}
    lines: dict[str, str] = {}
    cells: dict[str, int] = {}
    records = []
    for record in stream:
        if record.where not in names:
            names[record.where] = name = portable_place(record.where, cells)
            if name.startswith("your "):
                path, _, number = record.where.rpartition(":")
                lines[name] = linecache.getline(path, int(number)).strip()[:200]
        records.append({**record_to_dict(record), "where": names[record.where]})
    return {**CommandStream(inputs=stream.inputs).to_dict(), "records": records}, lines


def portable_place(where: str, cells: dict[str, int]) -> str:
    """``where`` as it means something elsewhere: within this package, in Python's own library, or as a line of the
    student's cell; ``cells`` numbers those.
    """
    path, _, number = where.rpartition(":")
    full = os.path.abspath(path)
    if full.startswith(PACKAGE + os.sep):
        inside = os.path.relpath(full, os.path.dirname(PACKAGE)).replace(os.sep, "/")
        return f"{inside}:{number}"
    if full.startswith(STANDARD + os.sep):
        return f"python/{os.path.basename(full)}:{number}"
    cell = cells.setdefault(path, len(cells) + 1)
    return f"your line {number}" if cell == 1 else f"your line {number} (cell {cell})"
