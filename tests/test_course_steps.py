"""What runs: grade cells are read and not run; free cells run where something needs them."""

from __future__ import annotations

import pytest

from tests.marking import cells, hand_in, notebook
from xinfer_lab.course.grade_cells import BadGradeCell, Check, grade_cells
from xinfer_lab.course.notebook import Cell, parse_notebook
from xinfer_lab.course.steps import Ask, Run, defined_names, steps_of
from xinfer_lab.course.transplant import transplant

RELEASED = parse_notebook(notebook(cells(filled=False, hidden=False, stream=False)))
GRADED = grade_cells(parse_notebook(notebook(cells(filled=True, hidden=True, stream=False))).cells)


def grade_cell(source: str) -> Cell:
    return Cell("code", source, "g", {"grade_id": "g", "grade": True, "solution": False, "points": 2})


def test_visible_and_hidden_checks_are_read_from_the_code() -> None:
    assert GRADED[0].checks == (Check("lab9.double", "double", 0), Check("lab9.double", "double", None))
    assert [cell.grade_id for cell in GRADED] == ["check-double", "check-triple", "check-choice", "written"]
    assert GRADED[-1].by_hand and GRADED[-1].checks == ()


def test_any_expression_and_a_fixed_seed_may_be_asked() -> None:
    (graded,) = grade_cells([grade_cell('check("lab9.gate", {"a": a, "b": f(b)}, seed=7)')])
    assert graded.checks == (Check("lab9.gate", "{'a': a, 'b': f(b)}", 7),)


@pytest.mark.parametrize(
    "source",
    [
        "",
        "# nothing",
        "assert double(1) == 2",
        "x = 1",
        "check(name, f)",
        'check("a.b", f, seed=s)',
        'check("a.b", f, seed="1")',
        'check("a.b", f, other=1)',
        'check("a.b"',
        "print(1)",
    ],
)
def test_a_grade_cell_that_marking_cannot_carry_out_is_refused(source: str) -> None:
    with pytest.raises(BadGradeCell, match="grade cell g"):
        grade_cells([grade_cell(source)])


def ran(changed: dict[str, str] | None = None, own: dict[str, str] | None = None) -> list[str]:
    found = transplant(RELEASED, parse_notebook(notebook(hand_in(changed, own=own))))
    return [
        step.name if isinstance(step, Run) else step.graded.grade_id
        for step in steps_of(found.cells, {g.grade_id: g for g in GRADED})
    ]


def test_steps_follow_the_notebook_and_leave_out_what_nothing_needs() -> None:
    assert ran() == ["setup", "double", "check-double", "triple", "check-triple", "choice", "check-choice"]


@pytest.mark.parametrize(
    "source",
    [
        "choice = explored[0]",
        "def choice(): return explored",
        "%time choice = explored",
        "class A:\n    x = explored\nchoice = 'B'",
    ],
)
def test_a_free_cell_runs_where_something_below_uses_what_it_defines(source: str) -> None:
    assert "explore" in ran({"choice": source})


def test_a_local_name_is_no_use() -> None:
    assert "explore" not in ran({"choice": "def choice():\n    explored = 1\n    return explored"})


def test_a_changed_free_cell_runs_always() -> None:
    assert "explore" in ran({"explore": "z = 1"})


def test_names_are_found_where_they_are_bound_or_changed() -> None:
    source = (
        "import a.b as c\nd, (e, *f) = 1, (2, 3)\ng.x = 1\nh[0] = 2\ndef i():\n"
        "    global j\n    j = 1\n    k = 2\nclass l: m = 1\nfor n in (): pass"
    )
    assert defined_names(source, "") == set("cdefghijln")
    assert (
        defined_names("this is no Python: double", "double") == {"double"}
        and defined_names("no Python:", "double") == set()
    )


def test_a_check_stands_at_its_place() -> None:
    found = transplant(RELEASED, parse_notebook(notebook(hand_in())))
    asks = [step for step in steps_of(found.cells, {g.grade_id: g for g in GRADED}) if isinstance(step, Ask)]
    assert [found.cells[ask.place].name for ask in asks] == ["check-double", "check-triple", "check-choice"]
