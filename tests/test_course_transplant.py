"""Transplanting: a student's answers and own cells reach the released notebook, and nothing else of his does."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.marking import ANSWERS, Cell, cells, code, hand_in, notebook, text
from xinfer_lab.course.notebook import Notebook, parse_notebook
from xinfer_lab.course.transplant import Origin, Transplant, transplant

RELEASED = parse_notebook(notebook(cells(filled=False, hidden=False, stream=False)))


def put(listed: list[Cell]) -> Transplant:
    return transplant(RELEASED, parse_notebook(notebook(listed)))


def sources(found: Transplant, *origins: Origin) -> list[str]:
    return [placed.cell.source for placed in found.cells if placed.origin in origins and placed.cell.kind == "code"]


def names(found: Transplant) -> list[str]:
    return [placed.name for placed in found.cells]


def index(listed: list[Cell], name: str) -> int:
    return next(i for i, cell in enumerate(listed) if cell["id"] == name)


def test_the_released_notebook_stays_as_it_is() -> None:
    found = transplant(RELEASED, RELEASED)
    assert [placed.cell for placed in found.cells] == list(RELEASED.cells)
    assert found.notes == () and found.missing == frozenset()


def test_answers_are_taken_by_grade_id() -> None:
    found = put(hand_in())
    assert sources(found, Origin.ANSWER) == list(ANSWERS.values())
    assert [placed.cell.source for placed in found.cells if placed.name == "written"] == ["Because."]
    assert found.notes == ()


def test_own_cells_stay_where_they_stand() -> None:
    found = put(hand_in(own={"setup": "a = 1", "double": "b = 2", "written": "c = 3"}))
    order = names(found)
    assert [order[order.index(f"your own cell {n}") - 1] for n in (1, 2, 3)] == ["setup", "double", "written"]


@pytest.mark.parametrize("name", ["setup", "check-double"])
def test_an_edited_cell_of_the_courses_is_put_back_and_told(name: str) -> None:
    found = put(hand_in({name: "print('mine')"}))
    assert "print('mine')" not in sources(found, *Origin)
    assert any(name in note and "changed" in note for note in found.notes)


@pytest.mark.parametrize("name", ["setup", "check-double", "explore", "title"])
def test_a_deleted_cell_of_the_courses_comes_back(name: str) -> None:
    found = put([cell for cell in hand_in() if cell["id"] != name])
    assert names(found) == names(put(hand_in()))


def test_a_deleted_gap_stays_empty_so_that_no_stub_overrides_an_answer_that_stands_elsewhere() -> None:
    listed = [cell for cell in hand_in(own={"setup": ANSWERS["double"]}) if cell["id"] != "double"]
    found = put(listed)
    assert found.missing == {"double"} and "double" not in names(found)
    assert ANSWERS["double"] in sources(found, Origin.OWN)
    assert any("double is missing" in note for note in found.notes)


def test_a_deleted_answer_that_a_person_grades_is_an_empty_one() -> None:
    found = put([cell for cell in hand_in() if cell["id"] != "written"])
    assert found.cells[-1].name == "written" and "no answer" in found.cells[-1].cell.source


def test_of_several_cells_with_one_grade_id_all_are_kept_in_their_order() -> None:
    listed = hand_in()
    listed.insert(
        index(listed, "double") + 1,
        {**code("x", "double = None", solution=True), "metadata": copy.deepcopy(listed[2]["metadata"])},
    )
    found = put(listed)
    assert sources(found, Origin.ANSWER, Origin.OWN)[:2] == [ANSWERS["double"], "double = None"]
    assert any("double is there 2 times" in note for note in found.notes)


def test_a_copied_check_counts_once() -> None:
    listed = hand_in()
    listed.append(copy.deepcopy(listed[index(listed, "check-double")]))
    found = put(listed)
    assert names(found).count("check-double") == 1 and len(found.cells) == len(RELEASED.cells)
    assert any("check-double is there 2 times" in note for note in found.notes)


def test_a_check_whose_metadata_a_student_gives_to_his_own_cell_is_the_courses() -> None:
    listed = [cell for cell in hand_in() if cell["id"] != "check-double"]
    listed.insert(3, code("mine", "print('passed')", grade=True, locked=True, points=100, grade_id="check-double"))
    found = put(listed)
    (check,) = (placed for placed in found.cells if placed.name == "check-double")
    assert check.cell.source == 'check("lab9.double", double)' and check.cell.mark["points"] == 2


@pytest.mark.parametrize("keep_ids", [True, False], ids=["ids are left", "ids are gone too"])
def test_without_metadata_answers_are_found_all_the_same(keep_ids: bool) -> None:
    listed = []
    for cell in hand_in(own={"setup": "a = 1"}):
        bare = {**cell, "metadata": {}}
        if not keep_ids:
            del bare["id"]
        listed.append(bare)
    found = put(listed)
    ran = sources(found, Origin.ANSWER, Origin.OWN)
    assert ran == ["a = 1", *ANSWERS.values()]
    assert sources(found, Origin.CHECK) == sources(put(hand_in()), Origin.CHECK)


def test_moved_answers_are_put_back_with_the_helper_above_them() -> None:
    listed = hand_in()
    answer = listed.pop(index(listed, "double"))
    found = put([*listed, code("helper", "a = 1"), answer])
    order = names(found)
    assert order[order.index("your own cell 1") + 1] == "double" and order.index("double") < order.index("check-double")


def test_an_answer_that_was_turned_into_text_is_taken_as_code_and_told() -> None:
    listed = hand_in()
    listed[2] = {**text("double", ANSWERS["double"]), "metadata": listed[2]["metadata"]}
    found = put(listed)
    assert ANSWERS["double"] in sources(found, Origin.ANSWER)
    assert any("turned into markdown" in note for note in found.notes)


def test_an_exploration_that_was_changed_is_the_students() -> None:
    found = put(hand_in({"explore": "explored = 1"}))
    assert sources(found, Origin.OWN) == ["explored = 1"] and sources(found, Origin.FREE) == []


def test_pictures_in_a_written_answer_are_kept() -> None:
    listed = hand_in()
    listed[-1]["attachments"] = {"a.png": {"image/png": "AAAA"}}
    assert put(listed).cells[-1].cell.attachments == {"a.png": {"image/png": "AAAA"}}


def as_notebook(found: Transplant) -> Notebook:
    return Notebook(tuple(placed.cell for placed in found.cells))


@st.composite
def handed_in(draw: st.DrawFn) -> list[Any]:
    """A submission after any sequence of deleting, copying, moving, stripping and writing cells."""
    listed = hand_in()
    for _ in range(draw(st.integers(0, 8))):
        at = draw(st.integers(0, max(0, len(listed) - 1)))
        to = draw(st.integers(0, len(listed)))
        what = draw(st.sampled_from(("delete", "copy", "move", "strip", "strip id", "own", "edit", "kind")))
        if what == "own" or not listed:
            listed.insert(to, code(f"own-{draw(st.integers(0, 3))}", f"x = {draw(st.integers(0, 2))}"))
            continue
        cell = copy.deepcopy(listed[at])
        if what in ("delete", "move"):
            del listed[at]
        if what in ("move", "copy"):
            listed.insert(to, cell)
        elif what == "strip":
            listed[at] = {**cell, "metadata": {}}
        elif what == "strip id":
            listed[at] = {name: value for name, value in cell.items() if name != "id"}
        elif what == "edit":
            listed[at] = {**cell, "source": "y = 1"}
        elif what == "kind":
            listed[at] = {**cell, "cell_type": draw(st.sampled_from(("code", "markdown", "raw")))}
    return listed


@given(handed_in())
def test_whatever_is_handed_in_the_courses_cells_are_there_once_in_order(listed: list[Any]) -> None:
    found = put(listed)
    given_cells = [placed.cell for placed in found.cells if placed.origin in (Origin.GIVEN, Origin.CHECK)]
    assert given_cells == [cell for cell in RELEASED.cells if cell.mark and not cell.mark["solution"]]
    gaps = [placed.name for placed in found.cells if placed.origin is Origin.ANSWER]
    assert gaps == [
        cell.grade_id
        for cell in RELEASED.cells
        if (cell.mark.get("solution") and cell.grade_id not in found.missing) or cell.grade_id == "written"
    ]


@given(handed_in())
def test_no_code_of_a_students_own_is_lost(listed: list[Any]) -> None:
    found = put(listed)
    kept = sources(found, *Origin)
    released = {cell.text for cell in RELEASED.cells}
    locked = {cell.grade_id for cell in RELEASED.cells if cell.mark and not cell.mark["solution"]}
    for cell in parse_notebook(notebook(listed)).cells:
        if (
            cell.kind == "code"
            and cell.grade_id not in locked
            and cell.text not in released
            and cell.id not in locked
            and cell.grade_id != "written"
            and cell.id != "written"
        ):
            assert cell.source in kept


@given(handed_in())
def test_transplanting_again_changes_nothing(listed: list[Any]) -> None:
    once = put(listed)
    twice = transplant(RELEASED, as_notebook(once))
    assert [(p.origin, p.cell) for p in twice.cells] == [(p.origin, p.cell) for p in once.cells]
