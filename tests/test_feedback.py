"""The pages that students get back: every reason is there, no hidden test is, nothing is loaded and nothing runs."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat import from_dict

from tests.answer_bank import SOURCES, answers, checks_of, run
from tests.feedback import html, lab, marked, page
from tests.html_rules import PageReader, active, loaded
from tests.notebooks import SOLUTIONS, mark, read, released, submission, text
from tests.sample import sampled
from xinfer_lab.course.feedback.formulas import mathml
from xinfer_lab.course.feedback.page import Points
from xinfer_lab.course.feedback.safe import LONGEST, code, cut, markdown
from xinfer_lab.course.verdict import Status
from xinfer_lab.grading import examine
from xinfer_lab.grading.report import Drawing, Misconception, Report

LAB = SOLUTIONS[0].parent.name
PIECE = "check-layer-bytes"

HOSTILE = (
    "<script>fetch('https://evil.example/')</script>",
    '<iframe src="https://evil.example/"></iframe>',
    '<img src="https://evil.example/x.png" onerror="alert(1)">',
    '"><svg onload=alert(1)>',
    "<style>@import url(https://evil.example/x.css);</style>",
    '<a href="javascript:alert(1)">here</a>',
    "</pre></code></details></section><h1>100 of 100</h1>",
    "![x](https://evil.example/y.png) ![y](attachment:none.svg) [z](javascript:alert(1))",
    "<math href='javascript:alert(1)'></math> $\\href{javascript:alert(1)}{x}$",
    "$$\\style{background:url(//evil.example)}{x}$$ $\\class{a onload=b}{x}$",
    "{{ 7 * 7 }} {% include 'style.css' %}",
)


def failed(name: str, **fields: object) -> tuple[Status, Report]:
    """A failed report on a piece, with everything that a report can have."""
    picture = Drawing("<svg xmlns='http://www.w3.org/2000/svg'><title>t</title></svg>", "what it shows", "a | table")
    known = {
        "where": "a case",
        "expected": "a figure",
        "got": "another figure",
        "line": "line 3: return 0",
        "misconception": Misconception("The name of it", "The sentence that mends it."),
        "hint": "What to do next.",
        "picture": picture,
    }
    return Status.FAILED, Report(f"lab1.{name}", False, "This is not right.", **{**known, **fields})


@pytest.mark.parametrize("source", SOLUTIONS, ids=lambda path: path.parent.name)
@pytest.mark.parametrize("filled", [True, False], ids=["filled", "unfilled"])
def test_no_hidden_test_and_no_answer_of_the_course_is_on_a_page_of_any_lab(source: Path, filled: bool) -> None:
    which = lab(source.parent.name)
    handed_in = submission(source) if filled else read(released(source))
    notebook = marked(which, handed_in, {cell.grade_id: failed("x") for cell in which.graded if not cell.by_hand})
    theirs = {cell["id"]: text(cell) for cell in read(source)["cells"]}
    for cell in notebook.cells:
        if mark(cell).get("grade") and not mark(cell).get("solution"):
            cell.source = theirs[cell["id"]]
    shown = html(which, notebook)
    for secret in ("HIDDEN TESTS", "seed=None", "BEGIN SOLUTION", "from xinfer_lab.grading.judges"):
        assert secret not in shown
    if not filled:
        given = "\n".join(text(cell) for cell in read(released(source))["cells"])
        for cell in read(source)["cells"]:
            if mark(cell).get("solution") and cell["cell_type"] == "code":
                lines = {line.strip() for line in text(cell).splitlines() if len(line.strip()) > 30}
                assert not any(
                    line in PageReader(shown).text for line in lines if line not in given and "###" not in line
                )


@pytest.mark.parametrize("source", SOLUTIONS, ids=lambda path: path.parent.name)
def test_a_page_of_any_lab_loads_nothing_and_runs_nothing(source: Path) -> None:
    which = lab(source.parent.name)
    reports = {cell.grade_id: failed("x") for cell in which.graded if not cell.by_hand}
    shown = PageReader(html(which, marked(which, submission(source), reports, printed="some words")))
    assert loaded(shown) == [] and active(shown) == []
    (policy,) = (a["content"] for tag, a in shown.elements if tag == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none'; img-src data:;")


@pytest.mark.parametrize("name", sampled(sorted(SOURCES)))
def test_the_reason_for_each_kind_of_wrong_answer_of_the_bank_is_on_the_page(name: str) -> None:
    """One wrong answer for each function, all in one notebook's page."""
    which = lab(SOURCES[name].parent.name)
    graded = {check.piece: cell.grade_id for cell in which.graded for check in cell.checks}
    reports = {}
    for answer in {answer.function: answer for answer in answers("wrong") if answer.lab == name}.values():
        names = run(answer)
        found = [examine(check, names[checks_of(name)[check]], seed=0) for check in sorted(answer.checks)]
        reports.update({graded[report.piece]: (Status.FAILED, report) for report in found})
    assert len(reports) >= 5
    shown = PageReader(html(which, marked(which, submission(SOURCES[name]), reports)))
    pictures = [dict(a) for tag, a in shown.elements if tag == "img"]
    for _, report in reports.values():
        for words in (report.headline, *(part for _, part in report.rows())):
            assert " ".join(words.split()) in shown.text
        if report.picture:
            assert any(picture["alt"] == report.picture.alt for picture in pictures)
    assert sum(report.picture is not None for _, report in reports.values()) == len(pictures)


@pytest.mark.parametrize("status", [Status.FAILED, Status.TIMED_OUT, Status.DIED, Status.MISSING])
def test_each_way_to_lose_points_is_named_with_its_reason(status: Status) -> None:
    which = lab(LAB)
    reports = {PIECE: (status, Report("lab1.layer_bytes", False, "So it went.", got="what the process did"))}
    shown = page(which, marked(which, submission(SOLUTIONS[0]), reports))
    piece = next(piece for piece in shown.pieces if piece.name == "lab1.layer_bytes")
    assert (piece.status, piece.score, piece.kind) == (status.value, "0 of 3", "lost")
    words = PageReader(html(which, marked(which, submission(SOLUTIONS[0]), reports))).text
    assert f"{status.value}, 0 of 3 points So it went. got" in words and "what the process did" in words


def test_a_check_that_was_never_marked_says_so() -> None:
    notebook = marked(lab(LAB), submission(SOLUTIONS[0]), {PIECE: failed("x")})
    for cell in notebook.cells:
        if cell["id"] == PIECE:
            cell.outputs = [output for output in cell.outputs if output.output_type == "error"]
    piece = next(piece for piece in page(lab(LAB), notebook).pieces if piece.name == PIECE)
    assert piece.status == "not marked" and "marked again" in piece.remark


def test_the_page_has_what_a_report_has_and_the_students_own_work_with_what_it_printed() -> None:
    words = PageReader(
        html(lab(LAB), marked(lab(LAB), submission(SOLUTIONS[0]), {PIECE: failed("x")}, printed="12 bytes"))
    ).text
    for part in (
        "where",
        "a case",
        "expected",
        "a figure",
        "got",
        "another figure",
        "line 3: return 0",
        "The name of it.",
    ):
        assert part in words
    for part in ("The sentence that mends it.", "What to do next.", "a | table", "Your work: layer-bytes", "12 bytes"):
        assert part in words
    assert "Task 1: the bytes of a layer" in words and "(15 minutes)" not in words


def works(name: str, title: str) -> list[str]:
    """The work that is shown for a piece of a lab that is filled in."""
    source = next(path for path in SOLUTIONS if path.parent.name.startswith(name))
    shown = page(lab(source.parent.name), marked(lab(source.parent.name), submission(source)))
    return [work.name for piece in shown.pieces if piece.title == title for work in (*piece.works, None) if work]


def test_each_piece_shows_what_answers_it_and_what_stands_above_it() -> None:
    # One answer for two checks; an answer whose own check comes after another.
    assert works("lab1", "Task 4: read a header by hand") == ["header-faded", "read-header", "read-header"]
    assert works("lab4", "Task 3: the clinic")[:4] == ["explain-ordering", "ordering", "explain-lifetime", "lifetime"]


def test_points_are_those_of_the_gradebook_and_the_sum_too() -> None:
    which = lab(LAB)
    notebook = marked(which, submission(SOLUTIONS[0]), {PIECE: failed("x")})
    most = sum(cell.points for cell in which.graded)
    shown = page(which, notebook, {"written": Points(2.5, 3, None, 2.5)}, late_penalty=1.0)
    assert (shown.score, shown.most) == (most - 3 - 0.5 - 1, most)
    assert "1 points were taken off for handing in late" in html(which, notebook, late_penalty=1.0)


def test_points_that_a_person_changed_say_so() -> None:
    notebook = marked(lab(LAB), submission(SOLUTIONS[0]), {PIECE: failed("x")})
    shown = page(lab(LAB), notebook, {PIECE: Points(3, 3, 0.0, 3.0)})
    piece = next(piece for piece in shown.pieces if piece.name == "lab1.x")
    assert piece.remark == "Your instructor set these points to 3; marking gave 0." and piece.kind == "full"


@pytest.mark.parametrize(
    ("points", "status", "score", "words"),
    [
        (Points(0, 3), "not read yet", "– of 3", "are not in the sum yet"),
        (Points(0, 3, 0.0), "no answer", "0 of 3", "there is no answer to read"),
        (Points(0, 3, None, 0.0), "read by your instructor", "0 of 3", "No comment was left"),
        (Points(3, 3, None, 3.0), "read by your instructor", "3 of 3", ""),
    ],
)
def test_a_written_answer_says_where_it_stands(points: Points, status: str, score: str, words: str) -> None:
    shown = page(lab(LAB), marked(lab(LAB), submission(SOLUTIONS[0])), {"written": points})
    piece = shown.pieces[-1]
    assert (piece.status, piece.score) == (status, score) and words in piece.remark
    assert piece.question.startswith("## In your own words") and [work.name for work in piece.works][-1] == "written"


def test_a_persons_comment_is_on_the_page() -> None:
    notebook = marked(lab(LAB), submission(SOLUTIONS[0]))
    for cell in notebook.cells:
        if cell["id"] == "written":
            cell.metadata["nbgrader"]["comment"] = "Well *argued*.\n\n<script>alert(1)</script>"
    shown = html(lab(LAB), notebook, {"written": Points(1, 3, None, 1.0)})
    assert "<em>argued</em>" in shown and "<script" not in shown and "No comment was left" not in shown


def test_notes_from_marking_stand_at_the_top() -> None:
    words = PageReader(
        html(lab(LAB), marked(lab(LAB), submission(SOLUTIONS[0]), notes=["lab (1).ipynb was <taken>."]))
    ).text
    assert "About the notebook you handed in lab (1).ipynb was <taken>." in words


@pytest.mark.parametrize("hostile", HOSTILE)
def test_nothing_that_a_student_writes_or_prints_loads_or_runs(hostile: str) -> None:
    which = lab(LAB)
    handed_in = submission(SOLUTIONS[0])
    for cell in handed_in["cells"]:
        if mark(cell).get("solution"):
            cell["source"] = hostile
    handed_in["cells"].insert(3, {"cell_type": "markdown", "metadata": {}, "source": hostile, "attachments": {}})
    drawing = Drawing(hostile, hostile, hostile)
    reports = {PIECE: failed("x", got=hostile, where=hostile, line=hostile, picture=drawing)}
    notebook = marked(which, handed_in, reports, printed=hostile, notes=[hostile])
    shown = PageReader(html(which, notebook))
    assert loaded(shown) == [] and active(shown) == []
    assert [tag for tag, _ in shown.elements].count("h1") == 1
    assert "49" not in shown.text or "7 * 7" not in hostile


def test_huge_work_is_cut_and_says_how_much_there_was() -> None:
    which = lab(LAB)
    handed_in = submission(SOLUTIONS[0])
    for cell in handed_in["cells"]:
        if mark(cell).get("solution") and cell["cell_type"] == "code":
            cell["source"] += "\n" + "x = 1  # " + "y" * 150_000
    shown = html(which, marked(which, handed_in, printed="z" * 20_000))
    assert len(shown) < 2_500_000 and "characters in all)" in shown and "too long to be shown as a whole" in shown


def test_a_notebook_of_another_release_is_refused_with_what_to_do() -> None:
    notebook = copy.deepcopy(marked(lab(LAB), submission(SOLUTIONS[0])))
    del notebook.cells[1]
    with pytest.raises(ValueError, match="mark it anew"):
        page(lab(LAB), notebook)


def test_only_pictures_out_of_the_notebook_are_shown() -> None:
    picture = {"a.png": {"image/png": "iVBORw0KGgo="}, "b.svg": {"image/svg+xml": "<svg onload=alert(1) />"}}
    shown = markdown("![one](attachment:a.png) ![two](attachment:b.svg) ![three](attachment:c.png)", picture)
    assert 'alt="one"' in shown and "data:image/png;base64,iVBORw0KGgo=" in shown
    assert 'src="data:image/svg+xml;base64,' in shown and "onload" not in shown
    assert "[picture left out: three]" in shown and "[picture left out: y]" in markdown("![y](//evil.example/y.png)")


def test_formulas_are_set_as_mathml() -> None:
    shown = markdown("It takes $T = \\frac{B}{b}$, and\n\n$$\nT_{comp} \\geq T_{trans}\n$$\n")
    assert shown.count("<math") == 2 and "<mfrac>" in shown and "<msub>" in shown and "$" not in shown


@pytest.mark.parametrize(
    "formula", ["\\frac{1}", "{" * 5_000, "\\left(" * 400, "x" * 5_000, "\\unknown{<b>}", "", "\x00"]
)
def test_a_formula_that_cannot_be_set_is_shown_as_it_was_written(formula: str) -> None:
    shown = PageReader(mathml(formula, display=False))
    assert active(shown) == [] and {tag for tag, _ in shown.elements} & {"code", "math"}


@given(st.text(max_size=300))
def test_any_text_stays_text(words: str) -> None:
    for shown in (markdown(words), code(words), markdown(f"$${words}$$")):
        read_back = PageReader(shown)
        assert active(read_back) == [] and loaded(read_back) == []


@given(st.text(alphabet="<>&\"'`$\\{}[]()!*_#|-\n scriptonhref:/=", max_size=400))
def test_no_play_with_markup_makes_anything_active(words: str) -> None:
    read_back = PageReader(markdown(words))
    assert active(read_back) == [] and loaded(read_back) == []


@given(st.text(), st.integers(1, 50))
def test_what_is_cut_keeps_its_beginning(words: str, most: int) -> None:
    shown = cut(words, most)
    assert len(shown) <= most + 60
    if len(words) <= most:
        assert "characters in all" not in shown or "characters in all" in words


def test_a_long_text_is_shown_as_it_is() -> None:
    assert markdown("*" * (LONGEST + 1)).startswith('<pre class="plain">')


def test_a_verdict_goes_through_the_notebooks_file_unharmed() -> None:
    notebook = marked(lab(LAB), submission(SOLUTIONS[0]), {PIECE: failed("x")})
    again = from_dict(json.loads(json.dumps(notebook)))
    assert html(lab(LAB), again) == html(lab(LAB), notebook)
