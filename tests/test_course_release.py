"""A release is put in place when it is whole, or not at all."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from tests.classes import LAB, SmallClass, remembered
from tests.command_line import invoke, refused
from tests.marking import hand_in, notebook
from tests.project import ROOT
from xinfer_lab.course import release as releasing
from xinfer_lab.course.release import generate, swap


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> SmallClass:
    """The small course with one student marked, and one graded cell then taken out of solutions/."""
    made = SmallClass(tmp_path_factory.mktemp("class"))
    made.submit("student", notebook(hand_in()))
    with remembered() as worker:
        made.mark(worker)
    path = made.root / "solutions" / LAB / "lab.ipynb"
    lab = json.loads(path.read_text(encoding="utf-8"))
    lab["cells"] = [cell for cell in lab["cells"] if cell["id"] != "check-choice"]
    path.write_text(json.dumps(lab), encoding="utf-8")
    return made


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_release_that_fails_leaves_the_lab_and_says_what_to_do_about_the_marks(course: SmallClass) -> None:
    before, files = content(course.root / "labs"), sorted(path.name for path in course.root.iterdir())
    said = refused(invoke("release", LAB, "--root", course.root))
    assert said.startswith(f"{LAB} has marks") and f"nbgrader db assignment remove {LAB} --force" in said
    assert said.endswith("Nothing was changed.") and len(said) < 600
    assert content(course.root / "labs") == before
    assert sorted(path.name for path in course.root.iterdir()) == files


@pytest.mark.slow
def test_what_it_says_to_do_works(course: SmallClass, tmp_path: Path) -> None:
    copy = course.copy(tmp_path / "course")
    copy.nbgrader("db", "assignment", "remove", LAB, "--force")
    generate(copy.root / "labs", root=copy.root, lab=LAB, gradebook=True)
    assert b"check-choice" not in content(copy.root / "labs" / LAB)["lab.ipynb"]


def test_a_lab_that_cannot_be_put_in_place_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("new", "labs/lab"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "lab.ipynb").write_text(name, encoding="utf-8")
    with monkeypatch.context() as changed:
        real = Path.rename
        changed.setattr(Path, "rename", lambda path, to: 1 / 0 if path.name == "new" else real(path, to))
        with pytest.raises(ZeroDivisionError):
            swap(tmp_path / "new", tmp_path / "labs/lab", tmp_path / "old")
    assert content(tmp_path / "labs/lab") == {"lab.ipynb": b"labs/lab"}
    swap(tmp_path / "new", tmp_path / "labs/lab", tmp_path / "old")
    assert content(tmp_path / "labs/lab") == {"lab.ipynb": b"new"}


def test_a_release_that_was_killed_between_two_moves_is_mended_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aside = tmp_path / ".labs-abc" / "old-lab"
    aside.mkdir(parents=True)
    (aside / "lab.ipynb").write_text("as it was", encoding="utf-8")
    monkeypatch.setattr(releasing, "run_nbgrader", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        generate(tmp_path / "labs", root=tmp_path)
    assert content(tmp_path / "labs") == {"lab/lab.ipynb": b"as it was"}


# -------------------------------------------------------------------------------------------------------- the archive


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A course that is only its labs; the package lies in the clone."""
    for name in sorted(path.name for path in (ROOT / "solutions").iterdir())[:2]:
        shutil.copytree(ROOT / "solutions" / name, tmp_path / "solutions" / name)
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_archive_of_a_course_elsewhere_has_the_labs_that_are_named(elsewhere: Path) -> None:
    first, second = sorted(path.name for path in (elsewhere / "solutions").iterdir())
    shutil.rmtree(elsewhere / "solutions" / second)
    said = invoke("release", first, "--bundle", "--root", elsewhere)
    assert said.exit_code == 0, said.stdout + said.stderr
    with zipfile.ZipFile(elsewhere / "release" / "xinfer-lab.zip") as archive:
        names = archive.namelist()
    assert {name.split("/")[2] for name in names if name.startswith("xinfer-lab/labs/")} == {first}
    assert "xinfer-lab/pyproject.toml" in names and "xinfer-lab/xinfer_lab/__init__.py" in names


def test_an_archive_of_labs_that_nobody_named_is_refused_before_anything_is_released(elsewhere: Path) -> None:
    first = min(path.name for path in (elsewhere / "solutions").iterdir())
    assert f"xinfer-lab release {first} --bundle" in refused(invoke("release", "--bundle", "--root", elsewhere))
    assert not (elsewhere / "labs").exists()
