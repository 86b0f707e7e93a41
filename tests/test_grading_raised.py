"""Who raised an exception, what counts as a number, and when a program slept: one definition of each."""

from __future__ import annotations

import json
import queue
import select
import threading
import time
from collections import deque
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from time import sleep as rest

import numpy as np
import pytest
import torch

from xinfer_lab.grading.numbers import plain_scalar, whole
from xinfer_lab.grading.piece import CHANGED, Case
from xinfer_lab.grading.question import Question
from xinfer_lab.grading.raised import ANSWER, Origin, origin_of
from xinfer_lab.grading.sleeping import on_sleep
from xinfer_lab.grading.verify_values import Judge, Refuses, verify_values

JUDGE = Judge(lambda inputs: Refuses("ValueError", "of a reason", also=("JSONDecodeError",)), "Refused.")
ASKED = Question("lab0.refuse", 1, lambda random: [], lambda answer, inputs, observed: answer(inputs["x"]))


def raises(x: object) -> None:
    raise ValueError("refused")


def raises_deeper(x: object) -> None:
    sorted([1, 2], key=raises)


def passes_on(x: object) -> None:
    try:
        raises(x)
    except ValueError:
        raise


def lacks_the_item(x: object) -> None:
    [1, 2].remove(3)


def unpacks(x: object) -> None:
    _, _ = [1]


def reads_json(x: object) -> None:
    json.loads("no json")


def converts(x: object) -> None:
    int("no number")


def origin(answer: object) -> Origin:
    try:
        answer(1)  # type: ignore[operator]
    except Exception as error:
        return origin_of(error)
    raise AssertionError("it was to raise")


@pytest.mark.parametrize("answer", [raises, raises_deeper, passes_on])
def test_a_raise_of_the_answers_own_is_a_refusal_wherever_it_stands(answer: object) -> None:
    assert origin(answer) == Origin(ANSWER, True) and origin(answer).refuses


@pytest.mark.parametrize("answer", [lacks_the_item, unpacks, converts])
def test_what_python_raises_in_a_line_of_the_answer_is_none(answer: object) -> None:
    assert origin(answer) == Origin(ANSWER, False) and not origin(answer).refuses


def test_a_full_stack_and_a_deque_that_changes_are_runtime_errors_and_no_refusals() -> None:
    def asks_itself(x: object) -> None:
        asks_itself(x)

    def walks(x: object) -> None:
        items = deque([1, 2])
        for item in items:
            items.append(item)

    for answer in (asks_itself, walks):
        assert not origin(answer).refuses


def test_a_librarys_exception_names_its_module() -> None:
    assert origin(reads_json).by == "json.decoder" and not origin(reads_json).refuses


@pytest.mark.parametrize(
    ("answer", "right"),
    [(raises, True), (raises_deeper, True), (lacks_the_item, False), (unpacks, False), (reads_json, True)],
)
def test_a_judge_takes_refusals_and_what_it_says_counts_as_well(answer: object, right: bool) -> None:
    cases = [Case("one", {"x": 1})]
    report = verify_values(ASKED.name, JUDGE, cases, json.loads(json.dumps(ASKED.record(answer, cases))))
    assert report.passed == right
    if not right:
        assert "Python itself, in a line of yours" in str(report) and report.line


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int64(7), 7),
        (np.float32(0.5), 0.5),
        (torch.tensor(7), 7),
        (torch.tensor(0.5), 0.5),
        (np.array(7), 7),
        (Fraction(1, 2), 0.5),
        (Decimal("0.5"), 0.5),
        (2**70, 2**70),
        (np.bool_(True), True),
        (True, True),
        ("7", None),
        (torch.tensor([7]), None),
        (1j, None),
        (None, None),
    ],
)
def test_a_number_is_a_number_whichever_library_made_it(value: object, plain: object) -> None:
    found = plain_scalar(value)
    assert found == plain and type(found) is type(plain)
    assert whole(value) == (plain if type(plain) is int else None)


def test_a_sleep_is_seen_by_whatever_name_and_only_meanwhile() -> None:
    seen: list[int] = []

    def by_module() -> None:
        time.sleep(0)

    def by_name() -> None:
        rest(0)

    with on_sleep({"one": by_module, "other": by_name}, lambda: seen.append(1)):
        by_module()
        by_name()
    by_module()
    by_name()
    assert len(seen) == 2


def test_a_wait_for_another_thread_is_a_sleep() -> None:
    seen: list[str] = []
    waits = {
        "event": lambda: threading.Event().wait(0.001),
        "semaphore": lambda: threading.Semaphore(0).acquire(timeout=0.001),
        "queue": lambda: queue.Queue().get(timeout=0.001),
        "simple": lambda: queue.SimpleQueue().get(timeout=0.001),
        "files": lambda: select.select([], [], [], 0),
    }
    for name, wait in waits.items():
        with on_sleep(wait, lambda name=name: seen.append(name)), suppress(queue.Empty):
            wait()
        with suppress(queue.Empty):
            wait()
    assert seen == list(waits)


def test_a_wait_of_another_thread_is_not_the_answers() -> None:
    seen: list[int] = []
    may_wait = threading.Lock()

    def waits() -> None:
        with may_wait:
            threading.Event().wait(0)

    may_wait.acquire()
    thread = threading.Thread(target=waits)
    thread.start()
    with on_sleep(None, lambda: seen.append(1)):
        may_wait.release()
        while thread.is_alive():
            pass
    assert not seen


def test_arguments_that_an_answer_overwrites_are_told_by_name() -> None:
    def overwrites(x: list) -> int:
        x.append(1)
        return 3

    cases = [Case("one", {"x": [1]})]
    data = json.loads(json.dumps(ASKED.record(overwrites, cases)))
    assert data["outcomes"][0]["observed"]["items"] == [[CHANGED, ["x"]]]
    judge = Judge(lambda inputs: 3, "Right.")
    report = verify_values(ASKED.name, judge, cases, data)
    assert not report.passed and "overwrites x" in report.headline


def test_a_thread_that_was_there_before_may_sleep_and_one_of_the_answers_may_not() -> None:
    told: list[str] = []
    begin = threading.Event()

    def kernels_own() -> None:
        begin.wait()
        time.sleep(0)

    before = threading.Thread(target=kernels_own)
    before.start()
    with on_sleep(kernels_own, lambda: told.append("slept")):
        begin.set()
        before.join()
        assert told == []
        own = threading.Thread(target=lambda: time.sleep(0))
        own.start()
        own.join()
    assert told == ["slept"]
