"""Write the feedback pages of a lab by nbgrader's own step, with the course's configuration."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from xinfer_lab.course.gradebook import CourseBook
from xinfer_lab.course.lab import find_lab
from xinfer_lab.course.mark_stamp import read_marks
from xinfer_lab.course.nbgrader_process import NbgraderError, run_nbgrader

__all__ = ["Pages", "generate_feedback", "marked_students"]

_FAILURE = re.compile(
    r"There was an error processing assignment: ([^\n]+)\n.*?^ {0,4}(?:[\w.]+\.)?\w+: ([^\n]+)$",
    re.MULTILINE | re.DOTALL,
)
"""In nbgrader's log: the folder of a notebook that could not be converted, a traceback, and the error's words."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of one student: none of them if ``problem`` says why."""

    student: str
    paths: tuple[Path, ...]
    problem: str = ""


def marked_students(root: Path, lab: str) -> list[str]:
    """Who has a marked notebook of ``lab`` in the course's folder ``root``."""
    return sorted(path.parent.name for path in (root / "autograded").glob(f"*/{lab}") if path.is_dir())


def generate_feedback(root: Path, lab: str, students: Sequence[str] | None = None) -> list[Pages]:
    """Write the pages of all marked notebooks of ``lab``, or of ``students`` alone; what is there is written anew.

    Blocks until nbgrader is done. A notebook that gives no page costs no other student theirs. One of another release
    than the lab's gets none, and the page that there was is taken away: it tells of points that have changed. Raises
    `GradebookError`, and ValueError where the lab is not released.
    """
    book, known = CourseBook(root), find_lab(root, lab)
    with book.gradebook():
        pass  # where it is no use nothing is begun
    marked = marked_students(root, lab)
    asked = marked if students is None else list(dict.fromkeys(students))
    problems = {name: f"no marked notebook of {lab} is there; mark it first" for name in asked if name not in marked}
    for name in asked:
        marks = read_marks(book.autograded(lab, name) / known.name) if name in marked else None
        if marks is not None and marks.release != known.version:
            problems[name] = (
                f"it was marked with an earlier release of {lab}; mark it again: xinfer-lab autograde {lab}"
            )
            shutil.rmtree(root / "feedback" / name / lab, ignore_errors=True)
    ready = [name for name in asked if name in marked and name not in problems]
    others = f"--CourseDirectory.student_id_exclude={','.join(sorted(set(asked) - set(ready)))}"
    for pattern in (["*"] if ready else []) if students is None else ready:
        try:
            run_nbgrader(root, "generate_feedback", lab, "--student", pattern, "--force", others)
        except NbgraderError as error:
            problems.update({Path(place).parts[-2]: words for place, words in _FAILURE.findall(error.log)})
    found = []
    for name in asked:
        # nbgrader removes the folder of a notebook that it could not convert.
        paths = tuple(sorted((root / "feedback" / name / lab).glob("*.html"))) if name in ready else ()
        found.append(Pages(name, paths, "" if paths else problems.get(name, "nbgrader wrote no page")))
    return found
