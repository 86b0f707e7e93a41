"""Recording: what an answer does is written down, whatever it does, and the student's own line with it."""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import random
import signal
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.answer_bank import notebook
from xinfer_lab.grading.denial import Allowed, DeniedModule, NotAllowed, denied_reference, deny
from xinfer_lab.grading.guard import AnswerTimeout, time_limit
from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.question import Question
from xinfer_lab.grading.rooms import LABS, allowed_in

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


class Swallows:
    """Ways to never end, though whatever is raised there goes no further."""

    def catches_everything() -> None:
        while True:
            with contextlib.suppress(BaseException):
                while True:
                    pass

    def catches_everything_while_it_sleeps() -> None:
        while True:
            try:
                time.sleep(60)
            except BaseException:
                continue

    def catches_it_on_every_floor() -> None:
        while True:
            try:
                Swallows.catches_everything()
            except BaseException:
                Swallows.catches_everything()

    def calls_itself_when_caught() -> None:
        try:
            while True:
                pass
        except BaseException:
            Swallows.calls_itself_when_caught()
        finally:
            Swallows.calls_itself_when_caught()

    def calls_back_while_garbage_is_collected() -> None:
        gc.callbacks.append(endless := lambda *_: Swallows.catches_nothing())
        try:
            while True:
                gc.collect()
        finally:
            gc.callbacks.remove(endless)

    def calls_back_for_a_weak_reference() -> None:
        while True:
            target = type("Target", (), {})()
            kept = weakref.ref(target, lambda _: Swallows.catches_nothing())
            del target
            assert kept() is None

    def finalizes() -> None:
        class Endless:
            def __del__(self) -> None:
                Swallows.catches_everything()

        while True:
            Endless()

    def catches_nothing() -> None:
        while True:
            pass


@pytest.mark.parametrize("ends", [way for name, way in vars(Swallows).items() if not name.startswith("_")])
def test_an_answer_is_stopped_wherever_the_interrupt_is_swallowed(
    ends: Callable[[], None], monkeypatch: pytest.MonkeyPatch, small_heap: None
) -> None:
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    monkeypatch.setattr("xinfer_lab.grading.guard.PAUSE", 0.05)
    with pytest.raises(AnswerTimeout), time_limit(cpu_seconds=0.05, wall_seconds=0.2):
        ends()
    assert told == [], "an interrupt that was swallowed is no news"


def test_what_cleans_up_can_finish_before_it_is_interrupted_again() -> None:
    cleaned = []
    with pytest.raises(AnswerTimeout), time_limit(cpu_seconds=0.05):
        try:
            while True:
                pass
        finally:
            cleaned.append(sum(range(1_000_000)))
    assert cleaned


def test_what_was_put_in_place_for_the_block_is_gone_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGINT), sys.unraisablehook, sys.gettrace(), threading.active_count()
    monkeypatch.setattr("xinfer_lab.grading.guard.PAUSE", 0.05)

    def answer(x: object) -> None:
        Swallows.catches_everything()

    outcomes(answer, question=replace(DOUBLE, cpu_seconds=0.05))
    assert (signal.getsignal(signal.SIGINT), sys.unraisablehook, sys.gettrace(), threading.active_count()) == before


def test_what_else_python_cannot_raise_is_told_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: told.append(unraisable.exc_type))

    class Fails:
        def __del__(self) -> None:
            raise ZeroDivisionError

    with time_limit(cpu_seconds=5):
        Fails()
    assert told == [ZeroDivisionError]


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
        from xinfer_lab.grading.judges import judge_of

        return judge_of("lab1.layer_bytes")

    assert outcomes(answer)[0]["raised"]["type"] == "DeniedModule"


ALLOWED = Allowed(("xinfer_lab.device",))


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


@pytest.mark.parametrize(
    "source",
    [
        "import os\ndef answer(x):\n    return os.getpid()",
        "from os import getpid\ndef answer(x):\n    return getpid()",
        "import xml.dom.minidom as m\ndef answer(x):\n    return m.parse(x)",
        "from colorsys import rgb_to_hls as answer",
        "class answer(__import__('ast').NodeVisitor):\n    pass",
    ],
)
def test_what_a_lab_does_not_allow_is_told_with_what_it_does(source: str) -> None:
    refused = denied_reference(answer_from(source), [], ALLOWED)
    assert isinstance(refused, NotAllowed) and "may not be used in an answer" in str(refused)
    assert "math" in str(refused) and "xinfer_lab.device" in str(refused)


@pytest.mark.parametrize(
    "line",
    [
        "import os",
        "import importlib.util",
        "from sys import modules",
        "import math, gc",
        "from xinfer_lab import paging",
        "from xinfer_lab.labs.lab3.parts import neighbours",
        "import transformers",
        "import torch.hub",
    ],
)
def test_code_of_a_notebook_imports_what_its_lab_allows_alone(line: str) -> None:
    import xinfer_lab.paging  # noqa: F401

    with deny([], ALLOWED):
        with pytest.raises(NotAllowed):
            exec(line, {"__name__": "__main__"})
        exec(line.replace("transformers", "json").replace("torch.hub", "json"), {"__name__": "a library"})
        exec(
            "import math, torch.nn\nfrom xinfer_lab import device\nimport xinfer_lab.device.fence",
            {"__name__": "__main__"},
        )
    exec(line.replace("transformers", "json").replace("torch.hub", "json"), {"__name__": "__main__"})


SHOWN = {"xinfer_lab.engine.speak", "xinfer_lab.engine.use"}
"""For cells of the notebook's own. They run the answers of other labs, so no answer may use them."""


@pytest.mark.parametrize("lab", LABS)
def test_what_a_notebook_imports_is_allowed_in_its_lab_or_denied_to_its_pieces(lab: str) -> None:
    allowed = allowed_in(f"{lab}.gate")
    assert allowed is not None
    for cell in notebook(lab):
        for node in ast.walk(ast.parse(cell["source"])):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in getattr(node, "names", [])]
            if isinstance(node, ast.Import | ast.ImportFrom):
                asked = set(names) - SHOWN
                assert [name for name in asked if name not in allowed and not allowed.leads_to(name)] == []


def test_an_innocent_answer_is_not_suspected() -> None:
    answer = answer_from("import json, math\ndef answer(x):\n    return json.dumps(math.prod([x]))")
    assert denied_reference(answer, ["colorsys"], ALLOWED) is None


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
