"""The grader is graded: every answer of the bank gets the verdict and the words that its header asks for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.answer_bank import SOURCES, Answer, answers, assemble, checks_of, concerned, functions_of, run
from tests.examining import Examiner, drawn
from tests.recorder import record_apart
from xinfer_lab.grading import Report, cases_from_data, find_piece
from xinfer_lab.grading.programs.record import Program

SEEDS = (0, 1, 20_261_129)


def seeds_of(check: str) -> tuple[int, ...]:
    """The seeds to draw cases from. A queue program takes its time and draws several models from one seed."""
    return SEEDS[:1] if isinstance(find_piece(check), Program) else SEEDS


def by_name(answer: Answer) -> str:
    return answer.name


@pytest.mark.parametrize("answer", answers("correct"), ids=by_name)
def test_a_correct_answer_passes_all_its_checks_whatever_is_drawn(answer: Answer) -> None:
    examiner = Examiner(run(answer))
    for check in concerned(answer.lab, answer.function):
        for seed in seeds_of(check):
            report = examiner.report(check, checks_of(answer.lab)[check], seed)
            assert report.passed, f"seed {seed}: {report}"


@pytest.mark.parametrize("answer", answers("wrong"), ids=by_name)
def test_a_wrong_answer_fails_exactly_the_checks_it_should_and_is_told_why(answer: Answer) -> None:
    examiner = Examiner(run(answer))
    checks = concerned(answer.lab, answer.function)
    assert answer.checks and answer.checks <= set(checks)
    told = []
    for check in checks:
        for seed in seeds_of(check):
            report = examiner.report(check, checks_of(answer.lab)[check], seed)
            assert report.passed == (check not in answer.checks), f"seed {seed}: {report}"
            if check in answer.checks and (not check.endswith(".gate") or len(answer.checks) == 1):
                assert report.line and report.expected and report.got and report.where, str(report)
                told.append(str(report))
    # Where a line of a report breaks is no part of what it says.
    phrase = " ".join(answer.phrase.split())
    assert any(phrase in " ".join(text.split()) for text in told), told[0]


@pytest.mark.parametrize("answer", answers("cheat"), ids=by_name)
def test_a_cheat_fails_where_recording_and_verifying_are_processes_of_their_own(answer: Answer, tmp_path: Path) -> None:
    reports = [grade_apart(answer, check, tmp_path) for check in sorted(answer.checks)]
    assert not any(report.passed for report in reports)
    phrase = " ".join(answer.phrase.split())
    assert any(phrase in " ".join(str(report).split()) for report in reports), "\n".join(map(str, reports))


def grade_apart(answer: Answer, check: str, folder: Path) -> Report:
    """The report on ``answer``, recorded in a child process that gets the cases and nothing that is right."""
    piece = find_piece(check)
    cases = json.loads(drawn(check, SEEDS[0]))
    seconds = piece.cpu_seconds  # type: ignore[attr-defined]
    if "come to an end" in answer.phrase:
        # It never does, so little is enough; a queue program runs a model before it gets there.
        seconds = 1.5 if isinstance(piece, Program) else 0.3
    name = checks_of(answer.lab)[check]
    data = record_apart(check, cases, assemble(answer), name, folder, cpu_seconds=seconds)
    return piece.verify(cases_from_data(cases), data)


@pytest.mark.parametrize("lab", sorted(SOURCES))
def test_every_function_has_at_least_eight_wrong_answers_and_three_correct_ones(lab: str) -> None:
    for function in sorted(functions_of(lab)):
        for kind, least in (("wrong", 8), ("correct", 3)):
            count = sum((answer.lab, answer.function) == (lab, function) for answer in answers(kind))
            assert count >= least, f"{function} has {count} {kind} answers"
