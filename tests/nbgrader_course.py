"""A course in a folder of its own, driven by the real nbgrader."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from pathlib import Path
from unittest.mock import patch

from tests.notebooks import Notebook, mark, read
from tests.project import ROOT
from xinfer_lab.course.nbgrader_process import nbgrader_environment, run_nbgrader

Scores = dict[str, tuple[float | None, float]]
"""Score and points of each graded cell; a score is None until a person has graded it."""


class LabCourse:
    """The lab whose instructor's notebook is ``source``, released in the folder ``root``."""

    def __init__(self, root: Path, source: Path) -> None:
        self.root, self.lab, self.notebook = root, source.parent.name, source.name
        shutil.copytree(source.parent, root / "solutions" / self.lab)
        shutil.copy(ROOT / "nbgrader_config.py", root)
        self.nbgrader("generate_assignment", self.lab)

    def nbgrader(self, *arguments: str) -> None:
        """Run ``nbgrader ARGUMENTS``."""
        own = {"JUPYTER_CONFIG_DIR": str(self.root / "jupyter"), "IPYTHONDIR": str(self.root / "ipython")}
        run_nbgrader(self.root, *arguments, environment=own)

    @property
    def released(self) -> Path:
        """The student's notebook."""
        return self.root / "labs" / self.lab / self.notebook

    def submit(self, student: str, notebook: Notebook) -> None:
        """Hand in ``notebook``."""
        folder = self.root / "submitted" / student / self.lab
        folder.mkdir(parents=True)
        (folder / self.notebook).write_text(json.dumps(notebook), encoding="utf-8")

    def autograde(self) -> None:
        """Mark all that was handed in."""
        self.nbgrader("autograde", self.lab)

    def scores(self, student: str) -> Scores:
        """What the gradebook holds."""
        with warnings.catch_warnings(), patch.dict(os.environ, nbgrader_environment(self.root)):
            warnings.simplefilter("ignore")  # SQLAlchemy's and nbgrader's own
            from nbgrader.api import Gradebook

            with Gradebook(f"sqlite:///{self.root / 'gradebook.db'}") as gradebook:
                name = self.notebook.removesuffix(".ipynb")
                graded = gradebook.find_submission_notebook(name, self.lab, student)
                return {grade.name: (grade.auto_score, grade.max_score) for grade in graded.grades}

    def outputs(self, student: str) -> dict[str, list[dict]]:
        """What stands under each graded or answered code cell of the marked notebook."""
        cells = read(self.root / "autograded" / student / self.lab / self.notebook)["cells"]
        return {mark(cell)["grade_id"]: cell["outputs"] for cell in cells if mark(cell) and cell["cell_type"] == "code"}

    def feedback(self, student: str) -> str:
        """The page that the student gets back."""
        path = self.root / "feedback" / student / self.lab / self.notebook
        return path.with_suffix(".html").read_text(encoding="utf-8")


def lost(scores: Scores) -> set[str]:
    """The graded cells that cost points."""
    return {name for name, (score, points) in scores.items() if score is not None and score < points}
