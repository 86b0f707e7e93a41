"""`xinfer-lab doctor`: what this machine has, what is missing, and what to do."""

from __future__ import annotations

import typer

from xinfer_lab.cli.machine import find_all
from xinfer_lab.cli.screen import print_table

__all__ = ["doctor"]

_WORDS = {"ok": "ok", "note": "note", "missing": "missing", "required": "MISSING"}


def doctor() -> int:
    """Print a row for each finding. 1 if something required is missing, else 0."""
    findings = find_all()
    rows = [
        [item.what, _WORDS[item.status], f"{item.found}\n-> {item.advice}" if item.advice else item.found]
        for item in findings
    ]
    print_table(["", "", "found"], rows, left=3)
    required = [item.what for item in findings if item.status == "required"]
    if required:
        typer.echo(f"Required and missing: {', '.join(required)}.")
        return 1
    typer.echo("Nothing required is missing. Next: xinfer-lab demo")
    return 0
