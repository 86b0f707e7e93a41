"""Recording: what an answer does is written down, whatever it does, and the student's own line with it."""

from __future__ import annotations

import functools
import gc
import random
import sys
import time
import warnings
import weakref
from collections.abc import Callable
from dataclasses import replace

import pytest

from xinfer_lab.grading.denial import DeniedModule, denied_reference, deny
from xinfer_lab.grading.guard import AnswerTimeout, time_limit
from xinfer_lab.grading.piece import Case, Question

DOUBLE = Question(
    "lab0.double",
    1,
    lambda random: [Case("one", {"x": 1})],
    lambda answer, inputs, observed: answer(inputs["x"]),
    ("colorsys",),
)
CASES = [Case("one", {"x": 1}), Case("two", {"x": [2]})]


def outcomes(answer: object, cases: list[Case] = CASES, question: Question = DOUBLE) -> list[dict]:
    return question.record(answer, cases)["outcomes"]


def test_a_returned_value_comes_with_the_line_of_its_return() -> None:
    def answer(x: object) -> object:
        if x == 1:
            return "first"
        return "second"

    first, second = outcomes(answer)
    assert (first["returned"], first["line"]["text"]) == ("first", 'return "first"')
    assert (second["returned"], second["line"]["text"]) == ("second", 'return "second"')


def test_an_exception_comes_with_its_class_its_bases_and_the_students_line_not_the_librarys() -> None:
    def answer(x: object) -> object:
        return functools.reduce(lambda a, b: a, [])

    (outcome, _) = outcomes(answer)
    assert outcome["raised"]["type"] == "TypeError" and "Exception" in outcome["raised"]["bases"]
    assert outcome["line"]["text"].startswith("return functools.reduce")


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, MemoryError, RecursionError, NotImplementedError])
def test_whatever_an_answer_raises_is_recorded_and_the_next_case_is_asked(error: type[BaseException]) -> None:
    def answer(x: object) -> object:
        raise error("gone")

    assert [outcome["raised"]["type"] for outcome in outcomes(answer)] == [error.__name__] * 2


def test_the_student_may_interrupt() -> None:
    def answer(x: object) -> object:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        outcomes(answer)


def test_an_answer_that_changes_its_inputs_changes_nobody_elses() -> None:
    def answer(x: list) -> object:
        x.append(3)
        return len(x)

    cases = [Case("list", {"x": [1, 2]})] * 2
    assert [outcome["returned"] for outcome in outcomes(answer, cases)] == [3, 3]
    assert cases[0].inputs["x"] == [1, 2]


def test_nothing_that_an_answer_says_reaches_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    def answer(x: object) -> object:
        print("loud", file=sys.stderr)
        warnings.warn("careful", stacklevel=1)
        return x

    outcomes(answer)
    assert capsys.readouterr().err == ""


def test_an_answer_that_never_ends_is_stopped_and_is_not_asked_again() -> None:
    def answer(x: object) -> object:
        while True:
            pass

    found = outcomes(answer, question=replace(DOUBLE, cpu_seconds=0.1))
    assert [outcome["raised"]["type"] for outcome in found] == ["AnswerTimeout"]
    assert found[0]["line"]["text"] in ("while True:", "pass")


def test_a_sleeping_answer_is_stopped_too() -> None:
    with pytest.raises(AnswerTimeout), time_limit(cpu_seconds=60, wall_seconds=0.1):
        time.sleep(60)


class Spends:
    """Takes 0.4 s of processor time where an exception goes no further: in what the collector calls, where an
    object is let go, and in a weak dictionary's clean-up.
    """

    def __init__(self) -> None:
        self.until = time.process_time() + 0.4

    def __call__(self, *_: object) -> None:
        while time.process_time() < self.until:
            pass

    def in_a_callback(self) -> None:
        gc.callbacks.append(spends := lambda *_: self())
        try:
            gc.collect()
        finally:
            gc.callbacks.remove(spends)

    def in_a_finalizer(self) -> None:
        class Finalized:
            def __del__(_) -> None:
                self()

        Finalized()

    def in_a_weak_dictionary(self) -> None:
        key = type("Key", (), {})()
        kept = weakref.WeakKeyDictionary({key: type("Value", (), {"__del__": self})()})
        del key
        assert not kept


@pytest.mark.parametrize("place", [Spends.in_a_callback, Spends.in_a_finalizer, Spends.in_a_weak_dictionary])
def test_a_limit_that_runs_out_where_an_exception_would_be_swallowed_stops_what_comes_next(
    place: Callable[[Spends], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    swallowed: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", swallowed.append)
    with pytest.raises(AnswerTimeout), time_limit(cpu_seconds=0.05):
        place(Spends())
        while True:
            pass
    assert swallowed == []


def test_a_finalizer_of_an_answers_own_that_never_ends_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless:
        def __del__(self) -> None:
            while True:
                pass

    swallowed: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", swallowed.append)
    monkeypatch.setattr("xinfer_lab.grading.guard.PATIENCE", 2)
    with pytest.raises(AnswerTimeout), time_limit(cpu_seconds=0.05):
        Endless()
        while True:
            pass
    assert len(swallowed) == 1


def test_what_ends_in_time_is_left_alone() -> None:
    with time_limit(cpu_seconds=5):
        found = sum(range(1000))
    assert found == 499_500


def test_a_debugger_that_is_tracing_stays() -> None:
    seen = []

    def tracer(frame: object, event: str, value: object) -> None:
        seen.append(event)

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        outcomes(lambda x: x)
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)


def test_denied_modules_cannot_be_imported_while_recording_and_can_afterwards() -> None:
    import colorsys

    def answer(x: object) -> object:
        import colorsys

        return colorsys.rgb_to_hls(1, 1, 1)

    (outcome, _) = outcomes(answer)
    assert outcome["raised"]["type"] == "DeniedModule" and outcome["line"]["text"] == "import colorsys"
    assert sys.modules["colorsys"] is colorsys and answer(1)


def test_a_denied_child_is_not_found_on_its_loaded_parent() -> None:
    import xml.dom.minidom  # noqa: F401

    with deny(["xml.dom"]), pytest.raises(ImportError):
        from xml import dom
    from xml import dom

    assert dom


def test_no_answer_may_ask_what_is_right() -> None:
    def answer(x: object) -> object:
        from xinfer_lab.grading.truth import judge_of

        return judge_of("lab1.layer_bytes")

    assert outcomes(answer)[0]["raised"]["type"] == "DeniedModule"


def answer_from(source: str, name: str = "answer") -> object:
    names: dict = {"__name__": "__main__"}
    exec(source, names)
    return names[name]


@pytest.mark.parametrize(
    "source",
    [
        "from colorsys import rgb_to_hls as answer",
        "import colorsys\ndef answer(x):\n    return colorsys.rgb_to_hls(x, x, x)",
        "from colorsys import rgb_to_hls as f\ndef g(x):\n    return f(x, x, x)\ndef answer(x):\n    return g(x)",
        "import colorsys\nanswer = (lambda inner: lambda x: inner.rgb_to_hls(x, x, x))(colorsys)",
        "import colorsys as c\ndef answer(x):\n    def g():\n        return c.rgb_to_hls(x, x, x)\n    return g()",
    ],
)
def test_an_answer_built_from_a_denied_module_is_told_so(source: str) -> None:
    answer = answer_from(source)
    assert "colorsys" in str(denied_reference(answer, ["colorsys"]))
    assert outcomes(answer)[0]["raised"]["type"] == DeniedModule.__name__


def test_an_innocent_answer_is_not_suspected() -> None:
    answer = answer_from("import json, math\ndef answer(x):\n    return json.dumps(math.prod([x]))")
    assert denied_reference(answer, ["colorsys"]) is None


def test_the_same_seed_draws_the_same_cases() -> None:
    from xinfer_lab.grading import pieces_of

    for piece in pieces_of("lab1"):
        assert piece.draw(5) == piece.draw(5)
        assert piece.draw(5) != piece.draw(6) or ".predict_" in piece.name or ".explain_" in piece.name


def test_drawing_does_not_look_at_the_state_of_random() -> None:
    from xinfer_lab.grading import find_piece

    first = find_piece("lab1.layer_bytes").draw(1)
    random.seed(99)
    assert find_piece("lab1.layer_bytes").draw(1) == first
