"""The tests of a lab's bank: every answer gets the verdict and the words that its header asks for.

tests/bank/test_lab1.py to test_lab6.py import them, and so get the answers of the lab that they are named after: a file
a lab, so that the workers of a run share the bank.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from tests.answer_bank import Answer, answers, assemble, checks_of, concerned, functions_of, run
from tests.examining import Examiner, drawn
from tests.recorder import record_apart
from xinfer_lab.grading import Report, cases_from_data, find_piece
from xinfer_lab.grading.programs.record_program import ProgramPiece

__all__ = [
    "pytest_generate_tests",
    "test_a_cheat_fails_where_recording_and_verifying_are_processes_of_their_own",
    "test_a_correct_answer_passes_all_its_checks_whatever_is_drawn",
    "test_a_wrong_answer_fails_exactly_the_checks_it_should_and_is_told_why",
    "test_every_function_has_at_least_eight_wrong_answers_and_three_correct_ones",
]

SEEDS = (0, 1, 20_261_129)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test the answers of the kind that its argument names, of the lab that its module names."""
    lab = metafunc.definition.path.stem.removeprefix("test_")
    if "lab" in metafunc.fixturenames:
        metafunc.parametrize("lab", [lab])
    for kind in {"correct", "wrong", "cheat"} & set(metafunc.fixturenames):
        metafunc.parametrize(kind, [_case(answer) for answer in answers(kind) if answer.lab == lab])


def _case(answer: Answer) -> Any:
    """A case of a test. Reference answers are tested every time, of the others a sample."""
    return pytest.param(answer, id=answer.name, marks=[] if answer.path.stem == "reference" else [pytest.mark.sampled])


def seeds_of(check: str) -> tuple[int, ...]:
    """The seeds to draw cases from. A queue program takes its time and draws several models from one seed."""
    return SEEDS[:1] if isinstance(find_piece(check), ProgramPiece) else SEEDS


def test_a_correct_answer_passes_all_its_checks_whatever_is_drawn(correct: Answer) -> None:
    examiner = Examiner(run(correct))
    for check in concerned(correct.lab, correct.function):
        for seed in seeds_of(check):
            report = examiner.report(check, checks_of(correct.lab)[check], seed)
            assert report.passed, f"seed {seed}: {report}"


def test_a_wrong_answer_fails_exactly_the_checks_it_should_and_is_told_why(wrong: Answer) -> None:
    examiner = Examiner(run(wrong))
    checks = concerned(wrong.lab, wrong.function)
    assert wrong.checks and wrong.checks <= set(checks)
    told = []
    for check in checks:
        # One seed: `make bank` tries twenty.
        seeds = seeds_of(check)
        seed = seeds[crc32(wrong.name.encode()) % len(seeds)]
        report = examiner.report(check, checks_of(wrong.lab)[check], seed)
        assert report.passed == (check not in wrong.checks), f"seed {seed}: {report}"
        if check in wrong.checks and (not check.endswith(".gate") or len(wrong.checks) == 1):
            assert report.line and report.expected and report.got and report.where, str(report)
            told.append(str(report))
    # Where a line of a report breaks is no part of what it says.
    phrase = " ".join(wrong.phrase.split())
    assert any(phrase in " ".join(text.split()) for text in told), told[0]


def test_a_cheat_fails_where_recording_and_verifying_are_processes_of_their_own(cheat: Answer, tmp_path: Path) -> None:
    reports = [grade_apart(cheat, check, tmp_path) for check in sorted(cheat.checks)]
    assert not any(report.passed for report in reports)
    phrase = " ".join(cheat.phrase.split())
    # What holds an answer may be refused by its lab's list before it is refused for that.
    phrases = (phrase, "uses a module that no answer may use") if phrase.endswith("holds the answer") else (phrase,)
    said = " ".join(" ".join(map(str, reports)).split())
    assert any(phrase in said for phrase in phrases), "\n".join(map(str, reports))


def grade_apart(answer: Answer, check: str, folder: Path) -> Report:
    """The report on ``answer``, recorded in a child process that gets the cases and nothing that is right."""
    piece = find_piece(check)
    cases = json.loads(drawn(check, SEEDS[0]))
    seconds = piece.cpu_seconds  # type: ignore[attr-defined]
    if "took too long" in answer.phrase:
        # It never does, so little is enough; a queue program runs a model before it gets there.
        seconds = 1.5 if isinstance(piece, ProgramPiece) else 0.3
    name = checks_of(answer.lab)[check]
    data = record_apart(check, cases, assemble(answer), name, folder, cpu_seconds=seconds)
    return piece.verify(cases_from_data(cases), data)


def test_every_function_has_at_least_eight_wrong_answers_and_three_correct_ones(lab: str) -> None:
    for function in sorted(functions_of(lab)):
        for kind, least in (("wrong", 8), ("correct", 3)):
            count = sum((answer.lab, answer.function) == (lab, function) for answer in answers(kind))
            assert count >= least, f"{function} has {count} {kind} answers"
