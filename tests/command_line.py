"""Running the command line from tests: in this process, and for real."""

import os
import subprocess
import sys
from typing import Any

from typer.testing import CliRunner

from tests.project import ROOT, STUCK
from xinfer_lab.cli import app

PLAIN = {"NO_COLOR": "1", "COLUMNS": "100", "TERM": "dumb"}


def invoke(*arguments: object) -> Any:
    """Run in this process. An error that the command line does not expect is raised here, with its traceback."""
    said = CliRunner().invoke(app, [str(argument) for argument in arguments], env=PLAIN)
    if said.exception is not None and not isinstance(said.exception, SystemExit):
        raise said.exception
    return said


def execute(
    *arguments: object, env: dict[str, str] | None = None, timeout: float = STUCK
) -> subprocess.CompletedProcess[str]:
    """Run `python -m xinfer_lab` in a process of its own."""
    command = [sys.executable, "-m", "xinfer_lab", *map(str, arguments)]
    merged = {**os.environ, **PLAIN, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **(env or {})}
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", env=merged, check=False, timeout=timeout
    )


def refused(said: Any) -> str:
    """The one sentence on standard error with which bad input was refused; nothing but that was said."""
    assert said.exit_code == 2, (said.exit_code, said.stdout, said.stderr)
    assert said.stdout == ""
    lines = said.stderr.splitlines()
    assert len(lines) == 1, said.stderr
    assert lines[0].startswith("xinfer-lab: ") and lines[0].endswith((".", "!", "?"))
    return lines[0].removeprefix("xinfer-lab: ")


def last_line(said: Any) -> str:
    """The last line of standard output."""
    return said.stdout.splitlines()[-1]
