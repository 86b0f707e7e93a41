"""A student's whole way: Labs 1 to 4 in real kernels, each part kept as its check passes, then the engine alone."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.command_line import execute
from tests.project import ROOT
from xinfer_lab.grading.keep import FOLDER, VARIABLE
from xinfer_lab.grading.progress import VARIABLE as PROGRESS

pytestmark = pytest.mark.slow

LABS = ("lab1", "lab2", "lab3", "lab4")


def run_notebook(path: Path, progress: Path) -> str:
    """What the notebook's cells show, run from top to bottom in a kernel in its own folder."""
    nb: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    client = NotebookClient(nb, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}})
    env = {name: value for name, value in os.environ.items() if name != VARIABLE}
    client.execute(env={**env, PROGRESS: str(progress), "PYTHONPATH": str(ROOT)})
    shown = []
    for cell in nb.cells:
        for output in cell.get("outputs", ()):
            shown.append(output.get("text") or output.get("data", {}).get("text/plain", ""))
    return "\n".join(shown)


def test_a_student_ends_with_an_engine_that_is_all_theirs(tmp_path: Path) -> None:
    course = tmp_path / "course größe"
    for lab in LABS:
        (folder,) = (ROOT / "solutions").glob(f"{lab}-*")
        shutil.copytree(folder, course / "labs" / folder.name)
    shown = {lab: run_notebook(next((course / "labs").glob(f"{lab}-*/*.ipynb")), tmp_path / "progress") for lab in LABS}

    for lab, said in shown.items():
        assert "Not kept" not in said, lab
        assert "Every check of this lab has passed." in said, lab
        assert "Lent by the course" not in said, lab
    assert "Yours, from earlier labs: layer_bytes (Lab 1)." in shown["lab2"]
    assert "Yours, from earlier labs: copy_engine (Lab 2), staging_ring (Lab 2)." in shown["lab3"]
    assert "layer_of (Lab 3), slot_of (Lab 3), copy_engine (Lab 2), staging_ring (Lab 2)." in shown["lab4"]
    assert "All 7 parts that ran are yours." in shown["lab4"]

    engine, parity = course / FOLDER, "streaming vs resident max abs diff = 0"
    assert parity in shown["lab4"]
    listed = execute("engine", "show", engine)
    assert listed.returncode == 0 and "16 of 22 parts are yours;" in listed.stdout, "the others are of Lab 5"
    options = ("shakespeare", "--engine", engine, "--device", "emulated", "--prompt", "ROMEO.")
    text = execute("generate", *options, "--max-new-tokens", "24")
    assert text.returncode == 0, text.stderr
    assert "All 7 parts that ran are yours." in text.stderr
    compared = execute("parity", *options)
    assert compared.returncode == 0, compared.stdout
    assert re.search(r"engine vs resident max abs diff = 0$", compared.stdout.strip())
    page = execute("engine", "page", *options, "--out", tmp_path / "page.html")
    assert page.returncode == 0 and parity in page.stdout
    assert "All 7 parts that ran are yours." in (tmp_path / "page.html").read_text(encoding="utf-8")
