"""Write the feedback pages of a lab by nbgrader's own step, with the course's configuration."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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

    Blocks until nbgrader is done. A notebook that gives no page costs no other student his.
    """
    marked = marked_students(root, lab)
    asked = marked if students is None else list(dict.fromkeys(students))
    problems = {name: f"no marked notebook of {lab} is there; mark it first" for name in asked if name not in marked}
    runs = ["*"] if students is None else [name for name in asked if name in marked]
    for pattern in runs:
        try:
            run_nbgrader(root, "generate_feedback", lab, "--student", pattern, "--force")
        except NbgraderError as error:
            problems.update({Path(place).parts[-2]: words for place, words in _FAILURE.findall(error.log)})
    found = []
    for name in asked:
        # nbgrader removes the folder of a notebook that it could not convert.
        paths = tuple(sorted((root / "feedback" / name / lab).glob("*.html"))) if name in marked else ()
        found.append(Pages(name, paths, "" if paths else problems.get(name, "nbgrader wrote no page")))
    return found
