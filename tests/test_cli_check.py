"""`xinfer-lab check`: what each check of a notebook says, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import invoke, refused
from tests.marking import code, notebook

CELLS = [
    "from xinfer_lab.grading import check",
    'check("lab1.predict_embedding", 50)',
    'check("lab1.layer_bytes", lambda config: 1)',
    'undefined_name\ncheck("lab1.predict_cache", "A")',
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, int]:
    folder = tmp_path_factory.mktemp("labs")
    path = folder / "lab.ipynb"
    path.write_text(json.dumps(notebook([code(f"c{i}", text) for i, text in enumerate(CELLS)])), encoding="utf-8")
    before = path.read_bytes()
    said = invoke("check", path, "--json", folder / "checks.json")
    assert path.read_bytes() == before
    return folder / "checks.json", said.stdout, said.exit_code


def test_each_check_has_its_status_and_the_reason(made: tuple[Path, str, int]) -> None:
    file, said, status = made
    data = json.loads(file.read_text(encoding="utf-8"))
    (one,) = data["notebooks"]
    assert data["format"] == "xinfer-lab-checks/1" and one["passed"] == 1
    assert [(check["piece"], check["status"]) for check in one["checks"]] == [
        ("lab1.predict_embedding", "passed"),
        ("lab1.layer_bytes", "not yet"),
        ("lab1.predict_cache", "not reached"),
    ]
    assert "expected:" in one["checks"][1]["report"]
    (stop,) = one["stopped"]
    assert (stop["cell"], stop["error"]) == (4, "NameError") and "undefined_name" in stop["message"]
    assert status == 1 and "1 of 3 checks passed." in said


def test_what_is_no_notebook_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lab.ipynb").write_text("{", encoding="utf-8")
    assert "is no notebook" in refused(invoke("check", tmp_path / "lab.ipynb"))
    assert "cannot be opened" in refused(invoke("check", tmp_path / "none.ipynb"))
