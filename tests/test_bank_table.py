"""`make bank`: a verdict other than the one that a header asks for is counted, in its column, and told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.answer_bank import Answer, answers
from tools.bank import COLUMNS, Ledger, drawn, grade, judge

RIGHT = next(answer for answer in answers("correct") if answer.name == "lab1/layer_bytes/correct/reference")
WRONG = next(answer for answer in answers("wrong") if answer.name == "lab1/layer_bytes/wrong/no_biases")


@pytest.mark.parametrize("answer", [RIGHT, WRONG])
def test_a_verdict_as_the_header_asks_for_is_no_fault(answer: Answer) -> None:
    assert judge(answer, 3) == ({}, [])


@pytest.mark.parametrize(
    ("answer", "fault", "words"),
    [
        (replace(RIGHT, checks=WRONG.checks), "accepted wrong", "passed"),
        (replace(WRONG, checks=frozenset()), "rejected correct", "not yet"),
        (replace(WRONG, phrase="words that nobody says"), "wrong message", "no message contains"),
    ],
)
def test_any_other_is_counted_and_told_with_its_seed(answer: Answer, fault: str, words: str) -> None:
    faults, said = judge(answer, 3)
    assert set(faults) == {fault}
    assert all("seed 3" in line for line in said) and words in said[0]


def test_the_table_counts_answers_once_and_gradings_and_faults_each_time() -> None:
    ledger = Ledger()
    for seed in (0, 1):
        ledger.enter(RIGHT, *judge(RIGHT, seed))
        ledger.enter(WRONG, *judge(replace(WRONG, phrase="words that nobody says"), seed))
    head, row, last, times = ledger.table()
    assert all(column in head for column in COLUMNS)
    cheats = sum((one.lab, one.function) == ("lab1", "layer_bytes") for one in answers("cheat"))
    assert row.split()[2:] == ["1", "1", str(cheats), "4", "0", "0", "2"]
    assert last.split()[1:] == row.split()[2:] and times.startswith("2 answers, 2 times each")
    assert len(ledger.complaints) == 2


def test_all_answers_to_a_check_are_asked_the_same_in_one_repeat_and_other_cases_in_the_next() -> None:
    assert drawn("lab1.layer_bytes", 5) is drawn("lab1.layer_bytes", 5)
    assert drawn("lab1.layer_bytes", 5) != drawn("lab1.layer_bytes", 6)


@pytest.mark.slow
def test_stopped_it_has_a_table_of_what_was_graded(capsys: pytest.CaptureFixture[str]) -> None:
    whole = grade([RIGHT, WRONG], 2, 1, lambda: False)
    assert whole.graded == {RIGHT.name: 2, WRONG.name: 2} and not whole.complaints
    assert "2 of 2 repeats" in capsys.readouterr().err
    looks = iter([False] * 4)
    stopped = grade([RIGHT, WRONG] * 200, 1_000_000, 1, lambda: next(looks, True))
    assert 0 < sum(stopped.graded.values()) < 100 and list(stopped.table())
