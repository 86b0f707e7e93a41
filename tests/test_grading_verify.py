"""Verifying: data is untrusted, the truth is computed here, and a wrong answer is told where it parts and why."""

from __future__ import annotations

import copy
import json
import re
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xinfer_lab.grading import examine, find_piece, pieces_of
from xinfer_lab.grading.judges import judge_of
from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.question import Question
from xinfer_lab.grading.report import Drawing, Misconception, Report
from xinfer_lab.grading.rooms import LABS
from xinfer_lab.grading.verify_values import Judge, Refuses, WrongModel, first_difference, verify_values

JUDGE = Judge(
    truth=lambda inputs: inputs["x"] * 2 if inputs["x"] >= 0 else Refuses("ValueError", "x is below 0"),
    passed="Doubled.",
    noun="number",
    wrong=(
        WrongModel("Squared", "Twice x is x + x.", lambda inputs: inputs["x"] ** 2),
        WrongModel("One more", "There is no 1 in it.", lambda inputs: inputs["x"] * 2 + 1),
        WrongModel("Ten more", "There is no 10 in it.", lambda inputs: inputs["x"] * 2 + 10),
    ),
)
CASES = [Case(f"x = {x}", {"x": x}) for x in (2, 3, 5)]


def data(*returned: Any, line: Any = None) -> dict:
    found = [{"returned": value, "line": line} for value in returned]
    return {"schema": 1, "piece": "lab0.double", "defined": {"number": 1, "text": "def double(x):"}, "outcomes": found}


def verify(recorded: object, cases: list[Case] = CASES, judge: Judge = JUDGE) -> Report:
    return verify_values("lab0.double", judge, cases, recorded)


def test_right_values_pass() -> None:
    assert verify(data(4, 6, 10)) == Report("lab0.double", True, "Doubled.", checked=3)


def test_the_first_difference_is_shown_with_both_sides_and_the_students_line() -> None:
    report = verify(data(4, 7, 11, line={"number": 3, "text": "return x + x"}))
    assert (report.where, report.expected, report.line) == ("x = 3", "6", "line 3: return x + x")
    assert report.got == "7 (1 too many)"


def test_without_a_line_of_its_own_the_definition_is_shown() -> None:
    assert verify(data(4, 6, 11)).line == "line 1: def double(x):"


def test_a_misconception_is_named_when_it_gives_exactly_what_was_given() -> None:
    report = verify(data(4, 9, 25))
    assert report.misconception == Misconception("Squared", "Twice x is x + x.")


def test_a_misconception_that_does_not_explain_every_case_is_not_named() -> None:
    assert verify(data(4, 9, 26)).misconception is None
    assert verify(data(5, 9, 25)).misconception is None  # the case that squaring gets right came out wrong


def test_two_misconceptions_at_once_are_both_named() -> None:
    report = verify(data(15, 17, 21))
    assert report.misconception and report.misconception.name == "One more; and Ten more"
    # As for a count of bytes: one of its factors twice wrong, another three times.
    twice, thrice = WrongModel("Twice", "", lambda i: 4 * i["x"]), WrongModel("Thrice", "", lambda i: 6 * i["x"])
    report = verify(data(24, 36, 60), judge=replace(JUDGE, wrong=(twice, thrice)))
    assert report.misconception and report.misconception.name == "Twice; and Thrice"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, "this is a bool"),
        (4.0, "divide with //"),
        ("4", "this is a str"),
        (None, "returned nothing"),
        ({"$": "float", "text": "nan"}, "this is a float"),
        ({"$": "object", "type": "torch.Tensor", "text": "tensor(4)"}, "this is a torch.Tensor"),
        ({"$": "int", "hex": hex(2**100)}, "not the right number"),
    ],
)
def test_a_value_of_another_type_is_not_right_and_is_told_so(value: Any, words: str) -> None:
    report = verify(data(value, 6, 10))
    assert not report.passed and words in str(report)


BY = {"by": "answer", "stated": True}


def raised(kind: str, *bases: str, args: list | None = None) -> dict:
    return {"raised": {"type": kind, "bases": [kind, *bases], "message": "no", "args": args or [], **BY}, "line": None}


def one(outcome: dict) -> dict:
    return {**data(), "outcomes": [outcome]}


def test_a_refusal_needs_the_right_class_or_one_below_it() -> None:
    cases = [Case("x = -1", {"x": -1})]
    assert verify(one(raised("ValueError")), cases).passed
    assert verify(one(raised("OwnError", "ValueError", "Exception")), cases).passed
    assert "refuse with ValueError" in verify(one(raised("KeyError", "LookupError")), cases).headline
    assert "has to refuse" in verify(data(-2), cases).headline


def test_a_refusal_with_other_figures_is_told_both() -> None:
    judge = Judge(truth=lambda inputs: Refuses("Full", "too small", (7, 5)), passed="", noun="number")
    report = verify(one(raised("Full", args=[5, 7])), CASES[:1], judge)
    assert (report.expected, report.got) == ("Full(7, 5), because too small", "Full(5, 7)")
    assert verify(one(raised("Full", args=[7, 5])), CASES[:1], judge).passed


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("NotImplementedError", "not filled in yet"),
        ("AnswerTimeout", "took too long"),
        ("DeniedModule", "holds the answer"),
    ],
)
def test_an_answer_that_did_not_answer_is_told_what_it_did(kind: str, words: str) -> None:
    assert words in verify(one(raised(kind))).headline


def test_an_answer_that_always_raises_valueerror_does_not_pass_as_a_refusal_of_good_input() -> None:
    assert not verify(one(raised("ValueError")), CASES[:1]).passed


def test_missing_outcomes_never_pass() -> None:
    assert not verify(data(4, 6)).passed
    assert not verify(data()).passed
    assert not verify(data(), cases=[]).passed


RIGHT = data(4, 6, 10)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(schema=2),
        lambda d: d.update(schema=True),
        lambda d: d.update(piece="lab0.other"),
        lambda d: d.update(passed=True),
        lambda d: d.pop("defined"),
        lambda d: d.update(defined="def double"),
        lambda d: d.update(outcomes={"0": 4}),
        lambda d: d["outcomes"].append({"returned": 1}),
        lambda d: d["outcomes"].__setitem__(0, 4),
        lambda d: d["outcomes"][0].update(passed=True),
        lambda d: d["outcomes"][0].update(raised=raised("ValueError")["raised"]),
        lambda d: d["outcomes"].__setitem__(0, {"raised": {"type": "ValueError"}}),
        lambda d: d["outcomes"].__setitem__(0, {"raised": {"type": 1, "bases": [], "message": "", "args": [], **BY}}),
        lambda d: d["outcomes"].__setitem__(0, {"raised": raised("E")["raised"] | {"bases": [[]]}}),
        lambda d: d["outcomes"].__setitem__(0, {"returned": 4, "observed": 3}),
        lambda d: d["outcomes"].__setitem__(0, {"returned": 4, "line": {"number": True, "text": ""}}),
        lambda d: d["outcomes"].__setitem__(0, {"returned": {"$": "code", "text": "1"}}),
    ],
)
def test_data_out_of_form_fails_with_a_reason_and_never_raises(change: Any) -> None:
    spoilt = copy.deepcopy(RIGHT)
    change(spoilt)
    report = verify(spoilt)
    assert not report.passed and "cannot be read" in report.headline


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(
    JSON | st.fixed_dictionaries({**{key: st.just(value) for key, value in RIGHT.items()}, "outcomes": st.lists(JSON)})
)
def test_no_data_makes_verifying_raise_or_pass_by_accident(recorded: object) -> None:
    report = verify(recorded)
    assert not report.passed or recorded == RIGHT


@given(st.recursive(st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_a_value_does_not_differ_from_itself(value: object) -> None:
    assert first_difference(value, copy.deepcopy(value)) is None


@pytest.mark.parametrize(
    ("expected", "got", "path"),
    [
        ([1, 2], [1, 3], "[1]"),
        ([1, 2], [1], "[1]"),
        ([1], [1, 2], "[1]"),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "['a']['b']"),
        ({"a": 1}, {}, "['a']"),
        ({}, {"a": 1}, "['a']"),
        ({1: 0}, {True: 0}, "[1]"),
        ({1: 0}, {"1": 0}, "[1]"),
        ([float("nan")], [float("nan")], "[0]"),
    ],
)
def test_the_first_difference_is_found_by_its_path(expected: object, got: object, path: str) -> None:
    found = first_difference(expected, got)
    assert found is not None and found[0] == path


def test_a_report_survives_json() -> None:
    report = verify(data(4, 9, 25, line={"number": 3, "text": "return x ** 2"}))
    drawn = Report("lab0.x", False, "No.", picture=Drawing("<svg/>", "a picture", "a | b"))
    for each in (report, drawn, verify(RIGHT)):
        assert Report.from_dict(json.loads(json.dumps(each.to_dict()))) == each


@pytest.mark.parametrize("change", [{"passed": 1}, {"headline": None}, {"score": 3}, {"checked": "3"}])
def test_a_report_of_another_form_is_refused(change: dict) -> None:
    with pytest.raises(ValueError):
        Report.from_dict({**verify(RIGHT).to_dict(), **change})


def test_a_report_in_html_says_all_that_the_text_says_and_lets_no_markup_in() -> None:
    report = Report("lab0.x", False, "No <b>", expected="<script>", got="&", line="line 1: a < b", where="here")
    page = report._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page
    for label, _ in report.rows():
        assert label in page


def test_truth_is_not_loaded_by_recording() -> None:
    import subprocess

    code = (
        "import sys; from xinfer_lab.grading import find_piece; piece = find_piece('lab1.kv_cache_bytes');"
        "from xinfer_lab.grading.piece import Case;"
        "piece.record(lambda *a: 1, [Case('', {'config': {}, 'context': 1, 'batch': 1})]);"
        "wrong = ('torch', 'xinfer_lab.grading.judges', 'xinfer_lab.qwen2');"
        "loaded = [name for name in sys.modules if name.startswith(wrong)];"
        "sys.exit(str(loaded) if loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_check_in_the_notebook_says_so_when_it_passes(capsys: pytest.CaptureFixture[str]) -> None:
    from xinfer_lab.grading import CheckFailed, check

    check("lab1.predict_embedding", 12)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("lab1.predict_embedding: passed.")
    assert re.fullmatch(r"\d+ of \d+ points\. Next: lab1\.\w+\.", said[1]) and len(said) == 2
    with pytest.raises(CheckFailed) as failed:
        check("lab1.predict_embedding", None)
    *told, gap, stopped, room = failed.value._render_traceback_()
    assert told == str(failed.value.report).splitlines() and (gap, room) == ("", "")
    assert re.fullmatch(r"Run All stops here: no cell below was run\. \d+ of \d+ points so far\.", stopped)
    assert capsys.readouterr() == ("", "")


def test_an_unknown_piece_is_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"lab1\.layer_bytes"):
        find_piece("lab1.layers")
    with pytest.raises(ValueError, match="lab1"):
        examine("lab9.x", None)


@pytest.mark.parametrize("lab", LABS)
def test_every_known_wrong_idea_is_wrong_somewhere_and_no_two_are_the_same(lab: str) -> None:
    questions = [piece.name for piece in pieces_of(lab) if isinstance(piece, Question)]
    for name, judge in ((name, judge_of(name)) for name in questions):
        cases = [case for seed in (0, 1, 2) for case in find_piece(name).draw(seed)]
        truth = [judge.truth(case.inputs) for case in cases]
        modelled = [(idea.name, idea.model) for idea in judge.wrong if idea.model is not None]
        answers = [(name, [model(case.inputs) for case in cases]) for name, model in modelled]
        for idea, answer in answers:
            assert answer != truth, f"{name}: {idea}"
        for place, (idea, answer) in enumerate(answers):
            for other, same in answers[place + 1 :]:
                assert answer != same, f"{name}: {idea} and {other}"


def test_a_failing_checks_picture_is_shown_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    from xinfer_lab.grading import CheckFailed
    from xinfer_lab.grading import check as module

    drawing, shown = Drawing("<svg/>", "a timeline", "a | b"), []
    failing = Report("lab1.layer_bytes", False, "No.", picture=drawing)
    monkeypatch.setattr(sys.modules[module.__module__], "examine", lambda *arguments, **named: failing)
    shell = SimpleNamespace(get_ipython=lambda: object(), display=SimpleNamespace(display=shown.append))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    with pytest.raises(CheckFailed):
        module("lab1.layer_bytes", None)
    assert shown == [drawing] and "a timeline" in drawing._repr_html_()


def test_what_a_passed_program_is_told_may_depend_on_how_all_its_cases_were_run() -> None:
    from xinfer_lab.grading.catalog import find_piece
    from xinfer_lab.grading.programs.verify_program import ProgramJudge, verify_program
    from xinfer_lab.labs.lab3.parts import neighbours

    piece = find_piece("lab3.release")
    cases = piece.draw(1)[:2]
    data = piece.record(neighbours("")["release"], cases)
    judge = ProgramJudge((), lambda found: f"{[len(one.stream) > 10 for one in found]}")
    report = verify_program(piece.name, judge, cases, data)
    assert report.passed and report.headline == "[True, True]"


def test_pieces_that_judge_the_same_run_share_what_is_known_of_it_and_no_other_run_does() -> None:
    from xinfer_lab.grading.catalog import find_piece
    from xinfer_lab.grading.programs.verify_program import read_evidence
    from xinfer_lab.labs.lab3.parts import neighbours

    piece, judges = find_piece("lab3.release"), [judge_of("lab3.release"), judge_of("lab3.gate")]
    one, two = cases = piece.draw(1)[:2]
    first, second = piece.record(neighbours("")["release"], cases)["outcomes"]
    known = read_evidence(judges[0], one, first)
    again = read_evidence(judges[1], one, copy.deepcopy(first))
    assert again is known and again.replay() is known.replay() and again.replay("copies_last") is not known.replay()
    assert read_evidence(judges[0], one, second) is not known and read_evidence(judges[0], two, first) is not known


@pytest.mark.parametrize(
    "place, levels, words",
    [
        ("calls", 1_500, "a call has a name, a begin, an end and plain values"),
        ("raised", 1_500, "nested deeper than 24"),
        ("calls", 100_000, "nested too deeply"),
        ("raised", 100_000, "nested too deeply"),
    ],
)
def test_a_recording_nested_too_deeply_to_be_read_is_said_to_be_so(place: str, levels: int, words: str) -> None:
    from xinfer_lab.grading.catalog import find_piece
    from xinfer_lab.labs.lab3.parts import neighbours

    piece = find_piece("lab3.release")
    cases = piece.draw(1)[:1]
    data = piece.record(neighbours("")["release"], cases)
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    raised = {"type": "ValueError", "bases": [], "message": "", "args": nested, **BY}
    data["outcomes"][0][place] = nested if place == "calls" else raised
    report = piece.verify(cases, data)
    assert not report.passed and words in report.headline


def test_a_report_within_a_report_keeps_its_picture_and_folds_its_sentences() -> None:
    drawn = "     record  copy " + " " * 60 + "| <== first"
    words = "read after write: " + "the direct queue reads it while the copy queue may still be writing it. " * 2
    shown = str(Report("lab0.double", False, "A race.", got=f"{words}\n  first    record 1\n\n{drawn}")).splitlines()
    assert any(line.endswith(drawn) for line in shown)
    assert all(len(line) <= 80 for line in shown if "record  copy" not in line)
    columns = "a " * 50 + "\n" + "b " * 50
    assert columns.splitlines()[1].strip() in str(Report("lab0.double", False, "Columns.", got=columns))
