"""The labs: in step with solutions/, giving nothing away, and built as every lab is."""

from __future__ import annotations

import copy
import json
import re
import shutil
from pathlib import Path

import pytest

from tests.notebooks import SOLUTIONS, mark, read, released, text
from tests.project import ROOT
from xinfer_lab.course.release import drift, leaks, main
from xinfer_lab.grading import examine, pieces_of

CHECK = re.compile(r'check\("((\w+)\.\w+)", (\w+)')


def name_of(path: Path) -> str:
    return path.parent.name


every_lab = pytest.mark.parametrize("source", SOLUTIONS, ids=name_of)


def test_labs_are_what_solutions_give() -> None:
    assert drift(root=ROOT) == []


def test_labs_give_nothing_away() -> None:
    assert leaks(root=ROOT) == []


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A copy of the course that a test may spoil."""
    for folder in ("solutions", "labs"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def spoil(course: Path, change: object) -> list[str]:
    """What `leaks` says once ``change`` has altered the first lab's released notebook."""
    path = course / released(SOLUTIONS[0]).relative_to(ROOT)
    notebook = read(path)
    change(notebook["cells"])  # type: ignore[operator]
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return leaks(root=course)


def test_a_line_of_an_answer_is_found_in_a_released_notebook(course: Path) -> None:
    secret = "attention = (q * hidden + q) + 2 * (kv * hidden + kv) + hidden * q"
    (fault,) = spoil(course, lambda cells: cells[0].update(source=[f"    {secret}"]))
    assert secret in fault


def test_a_hidden_test_is_found_in_a_released_notebook(course: Path) -> None:
    (fault,) = spoil(
        course, lambda cells: cells[0].update(source=['check("lab1.layer_bytes", layer_bytes, seed=None)'])
    )
    assert "hidden test" in fault


@pytest.mark.parametrize("words", ["### BEGIN SOLUTION", "### END HIDDEN TESTS"])
def test_a_mark_left_over_is_found(course: Path, words: str) -> None:
    (fault,) = spoil(course, lambda cells: cells[0].update(source=[words]))
    assert words.removeprefix("### ") in fault


def test_a_cell_that_is_there_twice_is_found_by_its_id_and_its_grade_id(course: Path) -> None:
    faults = spoil(course, lambda cells: cells.append(copy.deepcopy(next(cell for cell in cells if mark(cell)))))
    assert len(faults) == 2 and all("2 times" in fault for fault in faults)


def test_outputs_are_found(course: Path) -> None:
    def run(cells: list[dict]) -> None:
        next(cell for cell in cells if cell["cell_type"] == "code")["execution_count"] = 3

    (fault,) = spoil(course, run)
    assert "outputs" in fault


def test_a_check_that_can_be_edited_is_found(course: Path) -> None:
    (fault,) = spoil(
        course,
        lambda cells: next(cell for cell in cells if mark(cell).get("grade"))["metadata"]["nbgrader"].update(
            locked=False
        ),
    )
    assert "lock" in fault


def test_a_lab_that_was_not_released_is_found(course: Path) -> None:
    shutil.rmtree(course / "labs" / SOLUTIONS[0].parent.name)
    assert leaks(root=course) == [f"labs/{SOLUTIONS[0].parent.name}/{SOLUTIONS[0].name} is missing"]


def test_the_command_names_every_file_that_drifted_and_ends_with_status_1(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(ROOT / "nbgrader_config.py", course)
    lab = course / "labs" / SOLUTIONS[0].parent.name
    (lab / "notes.txt").write_text("left over", encoding="utf-8")
    (lab / "memory.svg").unlink()
    spoil(course, lambda cells: cells[1].update(source=["# changed by hand"]))
    assert main(["--check", "--root", str(course)]) == 1
    said = capsys.readouterr().out
    assert all(words in said for words in ("notes.txt is made by nothing", "memory.svg is missing", ".ipynb differs"))
    assert main(["--root", str(course / "labs")]) == 2


@every_lab
def test_a_notebook_is_plain_source_without_outputs_and_with_stable_ids(source: Path) -> None:
    notebook = read(source)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert (
        source.read_text(encoding="utf-8") == json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    )
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
        if mark(cell):
            assert mark(cell)["grade_id"] == cell["id"]


@every_lab
def test_every_piece_has_one_check_with_its_points_and_hidden_cases(source: Path) -> None:
    checks = {}
    for cell in read(source)["cells"]:
        if mark(cell).get("grade") and cell["cell_type"] == "code":
            pieces = {found[0] for found in CHECK.findall(text(cell))}
            assert len(pieces) == 1, f"{cell['id']} looks at {pieces}: one piece a graded cell"
            checks[pieces.pop()] = (mark(cell)["points"], "seed=None" in text(cell))
    lab = next(iter(checks)).partition(".")[0]
    assert {piece.name: piece.points for piece in pieces_of(lab)} == {
        name: points for name, (points, _) in checks.items()
    }
    for name, (_, hidden) in checks.items():
        assert hidden or ".predict_" in name or ".explain_" in name, f"{name} asks about no hidden cases"


@every_lab
def test_a_function_to_fill_in_has_its_contract_its_check_and_three_hints(source: Path) -> None:
    cells = read(released(source))["cells"]
    mended = {cell["id"] for cell in read(source)["cells"] if "### GAP:" in text(cell)}
    for place, cell in enumerate(cells):
        if not (mark(cell).get("solution") and re.search(r"^(def|class) ", text(cell), re.MULTILINE)):
            continue
        if cell["id"] in mended:
            continue
        following = cells[place + 1 : place + 4]
        assert '"""' in text(cell) and re.search(r'raise NotImplementedError\("fill in about \d+ lines?"\)', text(cell))
        assert mark(following[0]).get("grade"), f"{cell['id']} is not followed by its check"
        hints = next(text(after) for after in following if "<details>" in text(after))
        assert hints.count("<details><summary>Hint ") == 3


@every_lab
def test_a_program_to_mend_has_its_contract_its_check_and_three_hints_and_is_broken_as_it_comes(source: Path) -> None:
    answers = {cell["id"]: text(cell) for cell in read(source)["cells"]}
    cells = read(released(source))["cells"]
    for place, cell in enumerate(cells):
        name = re.search(r"^def (\w+)\(", text(cell), re.MULTILINE)
        if name is None or "### GAP:" not in answers[cell["id"]]:
            continue
        following = cells[place + 1 : place + 9]
        check = next(text(after) for after in following if mark(after).get("grade") and f", {name[1]})" in text(after))
        hints = next(text(after) for after in following if "<details>" in text(after))
        assert '"""' in text(cell) and hints.count("<details><summary>Hint ") == 3
        piece, names = CHECK.findall(check)[0][0], {}
        exec(text(cell), names)
        assert not examine(piece, names[name[1]]).passed, f"{cell['id']} passes as it comes"


@every_lab
def test_a_lab_says_what_it_is_for_and_what_it_takes(source: Path) -> None:
    cells = read(source)["cells"]
    headings = [line for cell in cells if cell["cell_type"] == "markdown" for line in text(cell).splitlines()]
    assert sum(line.startswith("# ") for line in headings) == 1
    assert text(cells[0]).startswith("# ") and text(cells[-1]).startswith("## Summary")
    for words in ("You will be able to", "You need", "Time", "Points"):
        assert f"**{words}**" in text(cells[0])
    points = sum(mark(cell)["points"] for cell in cells if mark(cell).get("grade"))
    assert f"**Points** {points}," in text(cells[0])


@every_lab
def test_every_picture_has_words_for_those_who_do_not_see_it_and_lies_beside_the_notebook(source: Path) -> None:
    for cell in read(source)["cells"]:
        for alt, target in (
            re.findall(r"!\[([^\]]*)\]\(([^)]*)\)", text(cell)) if cell["cell_type"] == "markdown" else ()
        ):
            assert len(alt) > 40 and (source.parent / target).is_file()
            assert "| --- |" in text(cell), f"{target} has no table that says the same"


@every_lab
def test_a_lab_loads_nothing_from_elsewhere(source: Path) -> None:
    everything = source.read_text(encoding="utf-8") + "".join(
        p.read_text(encoding="utf-8") for p in source.parent.glob("*.svg")
    )
    # A source may be linked: nothing follows it but a reader's click. A picture may not.
    everything = re.sub(r"(?<!!)\[[^\]]+\]\(https://[^)\s]+\)", "", everything)
    links = set(re.findall(r"https?://[^\s\"')]+", everything)) - {"http://www.w3.org/2000/svg"}
    assert links == set()


def test_the_configs_of_lab_1_are_the_published_ones() -> None:
    from xinfer_lab.qwen2 import PUBLISHED

    (cell,) = (cell for cell in read(SOLUTIONS[0])["cells"] if cell["id"] == "models")
    names: dict = {}
    exec(text(cell), names)
    assert set(names["MODELS"]) == {name.upper() for name in PUBLISHED}
    for name, config in PUBLISHED.items():
        assert names["MODELS"][name.upper()].items() <= config.to_dict().items()


GAPS = """def f():
    ### BEGIN SOLUTION
    ### GAP: for i in range(3):
    ### GAP:     pass
    ### GAP:
    ### GAP: return i
    return 2
    ### END SOLUTION


def g():
    ### BEGIN SOLUTION: raise NotImplementedError
    return 1
    ### END SOLUTION
    # between
    ### BEGIN SOLUTION
    return 0
    ### END SOLUTION
"""


def test_a_gap_may_have_lines_of_its_own_and_each_gap_of_a_cell_its_own_text() -> None:
    from nbformat.v4 import new_code_cell

    from xinfer_lab.course.clear_answers import ClearAnswers

    cell = new_code_cell(GAPS)
    assert ClearAnswers()._replace_solution_region(cell, "python")
    lines = cell.source.splitlines()
    assert lines[:5] == ["def f():", "    for i in range(3):", "        pass", "", "    return i"]
    assert lines[7:10] == ["def g():", "    raise NotImplementedError", "    # between"]
    assert "SOLUTION" not in cell.source and "return 2" not in cell.source and "return 0" not in cell.source
