"""Runs a recorded program again, in several of the orders that its fences allow, for disputes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xinfer_lab.device.device import KERNELS
from xinfer_lab.device.errors import DeviceError
from xinfer_lab.device.simulated import simulate
from xinfer_lab.device.timeline import Timeline
from xinfer_lab.grading.envelope import read_outcomes
from xinfer_lab.grading.judges import judge_of
from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.programs.evidence import Evidence, reference_logits
from xinfer_lab.grading.programs.model_case import ModelCase
from xinfer_lab.grading.programs.verify_program import ProgramJudge, read_evidence
from xinfer_lab.grading.values import BadData
from xinfer_lab.residency.parity import compare_logits, parity_line

__all__ = ["ORDERS", "Rerun", "read_programs", "rerun", "timeline_of"]

ORDERS = ("timed", "copies_first", "copies_last", "random(1)", "random(2)")


@dataclass(frozen=True, slots=True)
class Rerun:
    """What a replay in the order ``schedule`` gave, in words; ``peak``: its peak of device memory in bytes, or None
    if it broke off.
    """

    schedule: str
    words: str
    peak: int | None


def read_programs(piece: str, cases: Sequence[Case], data: object) -> Iterator[tuple[Case, Evidence]]:
    """The cases of a recording of ``piece`` with what is known of each. Raises `BadData` for what is no recording, or
    one of a piece that is not answered by a queue program, and `StreamError`.
    """
    judge = judge_of(piece)
    if not isinstance(judge, ProgramJudge):
        raise BadData(f"{piece} is answered by a value, not by a queue program: it has no command stream")
    outcomes, _ = read_outcomes(piece, cases, data)
    for case, outcome in zip(cases, outcomes, strict=False):
        yield case, read_evidence(judge, case, outcome)


def rerun(evidence: Evidence, schedule: str) -> Rerun:
    """Replay the stream of ``evidence`` with one's own weights in the order ``schedule``."""
    try:
        replayed = evidence.replay(schedule)
    except DeviceError as error:
        return Rerun(schedule, f"{type(error).__name__}: {error}", None)
    if not isinstance(evidence.case, ModelCase):
        return Rerun(schedule, f"{len(replayed.reads)} reads by the host", replayed.peak)
    expected = reference_logits(evidence.case)
    got = replayed.logits_as(expected)
    if got is None:
        words = f"logits of {len(replayed.logits)} passes, where {len(expected)} were asked for"
    else:
        words = parity_line(compare_logits(expected, got)[1], "recorded")
    return Rerun(schedule, words, replayed.peak)


def timeline_of(evidence: Evidence) -> Timeline:
    """When each command would run on the virtual clock."""
    return simulate(evidence.stream, evidence.case.spec(), KERNELS)
