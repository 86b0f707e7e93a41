"""nbgrader as a process of its own, in a course's folder."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

__all__ = ["NbgraderError", "nbgrader_environment", "run_nbgrader"]


class NbgraderError(RuntimeError):
    """nbgrader ended with another status than 0. The message has its last words; ``log`` has all of them."""

    def __init__(self, step: str, status: int, log: str) -> None:
        super().__init__(f"nbgrader {step} ended with status {status}:\n{log[-4000:]}")
        self.log = log


def nbgrader_environment(root: Path) -> dict[str, str]:
    """The environment that nbgrader needs: this package importable, and `alembic`, which it starts by name, on the
    path.

    A virtual environment that was not activated (as under make) has its scripts on no path.
    """
    folders = [sysconfig.get_path("scripts"), os.environ.get("PATH", "")]
    modules = [str(root), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PATH": os.pathsep.join(folder for folder in folders if folder),
        "PYTHONPATH": os.pathsep.join(module for module in modules if module),
    }


def run_nbgrader(root: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Run ``nbgrader ARGUMENTS`` in ``root`` and return what it logged; blocks until it is done.

    ``environment`` adds to `nbgrader_environment`. Raises `NbgraderError` for a status other than 0.
    """
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        cwd=root,
        env={**nbgrader_environment(root), **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NbgraderError(arguments[0], done.returncode, done.stderr)
    return done.stderr
