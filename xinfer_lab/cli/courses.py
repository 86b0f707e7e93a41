"""Finds the course that an instructor's command works on."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from xinfer_lab.cli.faults import CommandError

__all__ = ["find_course", "labs_of"]


def find_course(root: Path) -> Path:
    """The course's folder ``root``, in full. Raises `CommandError` if it is not a course."""
    if importlib.util.find_spec("xinfer_lab.course") is None:
        raise CommandError("this is the students' edition of xinfer-lab: it has no commands for instructors")
    root = root.resolve()
    missing = [name for name in ("solutions", "nbgrader_config.py") if not (root / name).exists()]
    if missing:
        raise CommandError(
            f"{root} is not a course: it has no {' and no '.join(missing)}; go to its folder or give --root"
        )
    return root


def labs_of(root: Path, chosen: Sequence[str] = ()) -> list[str]:
    """The labs of the course, or those ``chosen``. Raises `CommandError` for an unknown one."""
    labs = sorted(path.name for path in (root / "solutions").glob("*") if path.is_dir())
    for lab in chosen:
        if lab not in labs:
            raise CommandError(f"there is no lab {lab!r}; there are {', '.join(labs) or 'none'}")
    return [lab for lab in labs if not chosen or lab in chosen]
