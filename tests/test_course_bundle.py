"""The archive that students get has the labs and a package whose checks work, and no answer to read."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.answer_bank import SOURCES, given_and_answers, notebook
from tests.command_line import invoke, refused
from tests.project import ROOT
from xinfer_lab.course.bundle import MACHINE, TOP, asked_names, bundle, sealed_modules, write_bundle
from xinfer_lab.course.nbgrader_process import nbgrader_environment
from xinfer_lab.grading.catalog import pieces_of
from xinfer_lab.grading.rooms import LABS

pytestmark = pytest.mark.process

RELEASED = sorted(path.parent.name for path in SOURCES.values())
SEAL = '"""Sealed: '
WITH_TRITON = "xinfer_lab.residency.codec.triton_decode"


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return bundle(ROOT, RELEASED)


@pytest.fixture(scope="module")
def unpacked(files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    write_bundle(files, folder / "xinfer-lab.zip")
    with zipfile.ZipFile(folder / "xinfer-lab.zip") as archive:
        archive.extractall(folder)
    return folder / TOP


def python(folder: Path, program: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_is_there_that_only_an_instructor_needs(files: dict[str, bytes]) -> None:
    tops = {name.partition("/")[0] for name in files}
    assert tops == {
        "LICENSE", "README.md", "config", "constraints.txt", "environment.yml", "labs", "pyproject.toml", "xinfer_lab",
    }  # fmt: skip
    assert not [name for name in files if name.startswith("xinfer_lab/course/") or "__pycache__" in name]


def readable(files: dict[str, bytes]) -> dict[str, str]:
    texts = {name: content.decode() for name, content in files.items() if name.endswith(".py")}
    return {name: text for name, text in texts.items() if not text.startswith(SEAL)}


def test_no_module_that_can_be_read_defines_what_a_lab_asks_for(files: dict[str, bytes]) -> None:
    asked = asked_names(ROOT)
    assert {"read_header", "CopyEngine", "prefetch", "StreamingLayers"} <= asked
    for name, text in readable(files).items():
        if name.split("/")[1] in MACHINE:
            defined = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
            assert not defined & asked, name


def test_no_function_that_can_be_read_is_an_answer_under_another_name(files: dict[str, bytes]) -> None:
    def bodies(text: str) -> set[str]:
        kinds = ast.FunctionDef | ast.AsyncFunctionDef
        found = (node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds))
        # One-line bodies are alike everywhere.
        return {
            ast.dump(ast.Module(body, []))
            for node in found
            if len(ast.unparse(body := node.body[ast.get_docstring(node) is not None :]).splitlines()) > 2
        }

    answers: set[str] = set()
    for lab in SOURCES:
        for cell in notebook(lab):
            if cell["nbgrader"] and cell["nbgrader"]["solution"]:
                answers |= bodies(cell["source"])
    assert len(answers) > 10
    for name, text in readable(files).items():
        assert not bodies(text) & answers, name


def test_what_judges_and_what_pieces_deny_is_sealed(files: dict[str, bytes]) -> None:
    sealed = sealed_modules(ROOT)
    denied = {name for lab in LABS for piece in pieces_of(lab) for name in piece.denied_modules}
    alone = {name for name in denied if (ROOT / name.replace(".", "/")).with_suffix(".py").is_file()}
    assert alone and alone <= sealed
    judges = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in (ROOT / "xinfer_lab" / "grading" / "truth").rglob("*.py")
    }
    assert judges <= sealed
    for name in sealed:
        place = name.replace(".", "/")
        content = files.get(f"{place}.py") or files[f"{place}/__init__.py"]
        assert content.decode().startswith(SEAL) and b"def " not in content


def test_labs_have_stubs_and_pictures(files: dict[str, bytes]) -> None:
    for lab, source in SOURCES.items():
        released = files[f"labs/{source.parent.name}/{source.name}"]
        assert b"NotImplementedError" in released and b"BEGIN SOLUTION" not in released, lab
    assert any(name.startswith("labs/") and name.endswith(".svg") for name in files)


def test_only_the_labs_that_are_asked_for_go_in() -> None:
    labs = {name.split("/")[1] for name in bundle(ROOT, RELEASED[:1]) if name.startswith("labs/")}
    assert labs == {RELEASED[0]}


def test_the_same_course_makes_the_same_archive(files: dict[str, bytes], tmp_path: Path) -> None:
    for name in ("one.zip", "two.zip"):
        write_bundle(files, tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


@pytest.mark.slow
def test_every_module_of_the_archive_can_be_imported_and_holds_what_it_held(unpacked: Path) -> None:
    names = sorted(sealed_modules(ROOT))
    assert WITH_TRITON in names
    listed = (
        "import importlib, json\n"
        "def held(name):\n"
        "    try:\n"
        "        return sorted(key for key in vars(importlib.import_module(name)) if key[0] != '_')\n"
        "    except ModuleNotFoundError as error:\n"
        "        return [str(error)]\n"
        f"print(json.dumps({{name: held(name) for name in {names!r}}}))"
    )
    extra = {"SEALED", "base64", "zlib"}
    # Both in processes of their own: here a package also has the modules in it that other tests imported.
    sealed, plain = (json.loads(python(folder, listed)) for folder in (unpacked, ROOT))
    for name in names:
        assert set(sealed[name]) - extra == set(plain[name]) - extra, name
    # One module asks for Triton, which is there on machines with a GPU alone.
    broken = {name: held for name, held in sealed.items() if any("No module named" in one for one in held)}
    assert broken == ({} if importlib.util.find_spec("triton") else {WITH_TRITON: ["No module named 'triton'"]})


@pytest.mark.slow
def test_checks_in_a_notebook_work_with_it(unpacked: Path) -> None:
    cells = [source for _, source in given_and_answers("lab1")]
    checks = [cell["source"] for cell in notebook("lab1") if cell["nbgrader"] and cell["nbgrader"]["grade"]]
    wrong = "try:\n    check('lab1.layer_bytes', lambda config: 1)\nexcept Exception as no:\n    print('told', no)"
    said = python(unpacked, "\n\n".join([*cells, *(check for check in checks if "check(" in check), wrong]))
    assert said.count(": passed.") >= 15
    assert "expected:" in said.partition("told")[2]


def test_its_command_line_has_no_commands_for_instructors_and_the_rest_works(unpacked: Path) -> None:
    program = (
        "import sys\nfrom xinfer_lab.cli import app\n"
        "for arguments in ['autograde', 'lab1-residency'], ['make-checkpoint', 'model']:\n"
        "    sys.argv[1:] = arguments\n"
        "    try:\n        app()\n    except SystemExit as end:\n        print('status', end.code)"
    )
    said = [line for line in python(unpacked, program).splitlines() if line.startswith("status")]
    assert said == ["status 2", "status 0"]


# ---------------------------------------------------------------------------------------------------------- release


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real course with its first lab, never released."""
    root = tmp_path_factory.mktemp("course")
    shutil.copytree(ROOT / "solutions" / RELEASED[0], root / "solutions" / RELEASED[0])
    shutil.copytree(ROOT / "xinfer_lab", root / "xinfer_lab", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "config", root / "config")
    for name in ("nbgrader_config.py", "LICENSE", "constraints.txt", "environment.yml", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    return root


def test_release_makes_the_lab_tells_the_gradebook_and_writes_the_archive(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = invoke("release", "--bundle", "--root", course)
    assert said.exit_code == 0, said.stdout
    made = sorted((course / "labs" / RELEASED[0]).glob("*.ipynb"))
    assert [path.read_bytes() for path in made] == [
        path.read_bytes() for path in sorted((ROOT / "labs" / RELEASED[0]).glob("*.ipynb"))
    ]
    assert (course / "release" / "xinfer-lab.zip").is_file()
    for name, value in nbgrader_environment(course).items():
        monkeypatch.setenv(name, value)
    from xinfer_lab.course.gradebook import CourseBook

    with CourseBook(course).gradebook() as book:
        assert book.find_assignment(RELEASED[0]).max_score > 20


def test_what_is_no_course_or_no_lab_is_refused(course: Path, tmp_path: Path) -> None:
    assert "is not a course: it has no solutions and no nbgrader_config.py" in refused(
        invoke("release", "--root", tmp_path)
    )
    assert "there is no lab 'lab9'; there are lab1-residency" in refused(invoke("autograde", "lab9", "--root", course))
