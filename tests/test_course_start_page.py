"""The start page of `make lab`, what checks leave for it, and Validate in a process of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.engines import keep_parts
from tests.notebooks import SOLUTIONS, read, submission
from tests.project import ROOT
from xinfer_lab.course.moving_slots import ALT, LAYERS, moving_slots
from xinfer_lab.course.start_page import labs_in, render
from xinfer_lab.course.student_server import _load_jupyter_server_extension, validate
from xinfer_lab.engine.parts import kept_parts
from xinfer_lab.grading import CheckFailed, check
from xinfer_lab.grading.keep import digest_of
from xinfer_lab.grading.progress import VARIABLE, note_outcome, read_outcomes


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, not there yet, that checks were told to keep their outcomes in."""
    folder = tmp_path / "kept"
    monkeypatch.setenv(VARIABLE, str(folder))
    return folder


def test_a_check_leaves_what_it_said_last(kept: Path) -> None:
    with pytest.raises(CheckFailed):
        check("lab1.predict_embedding", None)
    assert read_outcomes(kept) == {"lab1.predict_embedding": False}
    check("lab1.predict_embedding", 30)
    assert read_outcomes(kept) == {"lab1.predict_embedding": True}
    with pytest.raises(CheckFailed):
        check("lab1.predict_embedding", None)
    assert read_outcomes(kept) == {"lab1.predict_embedding": False}


def test_nothing_is_kept_unless_a_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    check("lab1.predict_embedding", 30)
    assert list(tmp_path.iterdir()) == []


def test_a_check_does_not_fail_where_its_outcome_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file"))
    check("lab1.predict_embedding", 30)
    assert read_outcomes(tmp_path / "file") == {}


@pytest.mark.parametrize("name", ["../lab1.x", "lab1", "", "lab1.x/y", "LAB1.X"])
def test_only_a_piece_has_an_outcome(kept: Path, name: str) -> None:
    note_outcome(name, True)
    assert not kept.exists()


def test_what_is_no_outcome_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "lab1.a").write_text("passed", encoding="ascii")
    (tmp_path / ".lab1.b-17").write_text("pas", encoding="ascii")
    (tmp_path / "lab1.c").write_bytes(b"\xff")
    (tmp_path / "lab1.d").mkdir()
    assert read_outcomes(tmp_path) == {"lab1.a": True}
    assert read_outcomes(tmp_path / "absent") == {}


def test_every_lab_is_on_the_page_with_its_points(tmp_path: Path) -> None:
    labs = labs_in(ROOT / "labs", {})
    assert [lab.path for lab in labs] == [f"{source.parent.name}/{source.name}" for source in SOLUTIONS]
    for lab, source in zip(labs, SOLUTIONS, strict=True):
        stated = re.search(r"\*\*Points\*\* (\d+),", "".join(read(source)["cells"][0]["source"]))
        assert stated is not None
        assert sum(sum(task.points) for task in lab.tasks) == int(stated[1]), "with the written question"
        assert (lab.passed, [task.state for task in lab.tasks if task.by_hand]) == (0, ["read by your instructor"])
        assert lab.title.startswith("Lab ")


def test_points_and_the_next_section_follow_from_outcomes() -> None:
    (lab,) = (lab for lab in labs_in(ROOT / "labs", {"lab1.predict_embedding": True, "lab1.layer_bytes": False})
              if lab.path.startswith("lab1"))  # fmt: skip
    assert lab.passed == 1 and lab.next is not None and lab.next.heading == "Task 1: the bytes of a layer"
    states = {task.heading: task.state for task in lab.tasks}
    assert states["One memory for everything"] == "passed"
    assert states["Task 1: the bytes of a layer"] == "begun"
    assert states["Task 2: the bytes of a model"] == "not tried yet"


def test_a_finished_lab_says_so_and_one_not_begun_too() -> None:
    outcomes = {name: True for name in _pieces("lab2-copy-queue")}
    page = render(labs_in(ROOT / "labs", outcomes), base_url="/")
    assert "30 of 30 points, and 3 graded by your instructor; about 135 minutes. All checks passed." in page
    assert "0 of 31 points, and 3 graded by your instructor; about two hours. Not begun yet." in page


def _pieces(folder: str) -> list[str]:
    (path,) = (ROOT / "labs" / folder).glob("*.ipynb")
    return re.findall(r'check\(\\"(lab\d\.\w+)', path.read_text(encoding="utf-8"))


def test_the_page_loads_nothing_and_leads_to_each_notebook_below_the_server() -> None:
    page = render(labs_in(ROOT / "labs", {}), base_url="/hub/")
    assert re.findall(r"(?:src|href|url)=?[(\"']*(?:https?:)?//", page) == []
    links = re.findall(r'href="([^"]+)"', page)
    assert links[1] == "/hub/doc/workspaces/lab1-residency/tree/lab1-residency/residency.ipynb"
    assert all(link.startswith(("/hub/doc/", "/hub/lab")) for link in links[1:])


def test_titles_are_text_and_unreadable_notebooks_are_left_out(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    notebook = read(SOLUTIONS[0])
    notebook["cells"][0]["source"] = ["# A <b>lab</b> & more"]
    (tmp_path / "a" / "my lab.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    (tmp_path / "b" / "broken.ipynb").write_text("{", encoding="utf-8")
    (tmp_path / "c" / "empty.ipynb").write_text(json.dumps({"cells": []}), encoding="utf-8")
    labs = labs_in(tmp_path, {})
    assert [lab.path for lab in labs] == ["a/my lab.ipynb"]
    page = render(labs, base_url="/")
    assert "A &lt;b&gt;lab&lt;/b&gt; &amp; more" in page and "/doc/workspaces/a/tree/a/my%20lab.ipynb" in page
    assert "There is no lab in this folder." in render(labs_in(tmp_path / "absent", {}), base_url="/")


def test_jupyterlab_finds_the_labs_style_after_one_of_the_user_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "kept")
    searched = ["own", "jupyter_server's"]
    app = SimpleNamespace(
        settings={"static_custom_path": searched, "base_url": "/"}, add_handlers=lambda pattern, handlers: None
    )
    _load_jupyter_server_extension(
        SimpleNamespace(web_app=app, root_dir="labs", config_file_paths=[str(ROOT / "config" / "jupyter")])
    )
    assert (searched[0], searched[-1]) == ("own", "jupyter_server's")
    found = [Path(folder) / "custom.css" for folder in searched if (Path(folder) / "custom.css").is_file()]
    assert found == [ROOT / "config" / "jupyter" / "custom" / "custom.css"]
    assert json.loads((ROOT / "config/jupyter/jupyter_lab_config.json").read_text("utf-8"))["LabApp"]["custom_css"]


def test_validate_names_the_checks_that_fail_and_keeps_its_hands_off_the_file(tmp_path: Path) -> None:
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    (tmp_path / "labs").mkdir()
    path = tmp_path / "labs" / "short.ipynb"
    notebook = submission(SOLUTIONS[0], lambda _, answer: answer.replace("percent = 27.6", "percent = None"))
    keep = {"setup", "predict-embedding", "check-predict-embedding", "models", "layer-bytes", "check-layer-bytes"}
    notebook["cells"] = [cell for cell in notebook["cells"] if cell["id"] in keep]
    before = json.dumps(notebook)
    path.write_text(before, encoding="utf-8")
    said = validate(tmp_path, path)
    assert said["success"], said
    (failed,) = said["value"]["failed"]
    assert 'check("lab1.predict_embedding"' in failed["source"] and "not yet" in failed["raw_error"]
    assert path.read_text(encoding="utf-8") == before


def test_validate_says_what_is_wrong_with_a_file_that_is_no_notebook(tmp_path: Path) -> None:
    (tmp_path / "x.ipynb").write_text("{", encoding="utf-8")
    said = validate(tmp_path, tmp_path / "x.ipynb")
    assert not said["success"] and "JSON" in said["value"]


def test_the_server_that_students_start_has_our_validate_and_not_nbgraders() -> None:
    config = json.loads((ROOT / "config/jupyter/jupyter_server_config.json").read_text(encoding="utf-8"))
    extensions = config["ServerApp"]["jpserver_extensions"]
    assert extensions["xinfer_lab.course.student_server"] is True
    assert extensions["nbgrader.server_extensions.validate_assignment"] is False
    assert os.environ.get(VARIABLE) is None, "tests leave no outcomes in a folder of the student's"


# ---------------------------------------------------------------------------------------------- what one sees first


def test_the_page_opens_with_the_promise_a_picture_and_where_to_go_on() -> None:
    labs = labs_in(ROOT / "labs", {"lab1.layer_bytes": True})
    page = render(labs, base_url="/")
    promise, picture, points = page.index("byte for byte"), page.index("<figure"), page.index("3 of ")
    assert promise < picture < points < page.index("<article")
    for lab in labs:
        assert lab.about and lab.about in page.replace("&#x27;", "'") and lab.time and lab.time in page


def test_the_picture_says_in_words_what_moves_and_stands_still_where_less_motion_is_wanted() -> None:
    figure = moving_slots()
    assert figure.count(ALT) == 2 and "prefers-reduced-motion:reduce" in figure and "<script" not in figure
    boxes = re.findall(r'<g class="go(\d)" transform="translate\((-?\d+) (-?\d+)\)">', figure)
    assert [layer for layer, *_ in boxes] == [str(layer) for layer in range(LAYERS)]
    moved = {layer for layer, x, y in boxes if (x, y) != ("0", "0")}
    assert moved == {"2", "3"}, "one layer is in its slot, the next on its way"


def test_parts_of_the_engine_stand_on_the_page_and_none_of_their_code_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_parts(tmp_path, monkeypatch, without=("slot_of",))
    passed = json.loads((tmp_path / "parts.json").read_text())
    text = "raise SystemExit('run')\n"
    (tmp_path / "layer_of.py").write_text(text)
    passed["layer_of"]["lab3.layer_of"] = [digest_of(text)]
    (tmp_path / "parts.json").write_text(json.dumps(passed))
    page = render(labs_in(ROOT / "labs", {}), base_url="/", parts=kept_parts(tmp_path))
    assert "21 of 22 parts are yours" in page
    assert re.search(r"<td>slot_of</td><td>Lab 3</td><td>lent</td>", page)
    lab3 = page.partition("lab3-double")[2].partition("</article>")[0]
    assert '<th scope="row">your parts</th><td>layer_of, ensure, wait_until_read, prefetch, release</td>' in lab3
    assert '<th scope="row">lent parts</th><td>slot_of</td>' in lab3
    assert "Your engine" not in render(labs_in(ROOT / "labs", {}), base_url="/")
