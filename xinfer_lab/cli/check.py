"""`xinfer-lab check`: run notebooks from their beginning and say what each check says, for people and as JSON."""

from __future__ import annotations

import ast
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer

from xinfer_lab.cli.faults import CommandError
from xinfer_lab.cli.output import output_file
from xinfer_lab.cli.screen import print_table
from xinfer_lab.grading import keep
from xinfer_lab.grading.progress import VARIABLE, read_outcomes

__all__ = ["check"]

FORMAT = "xinfer-lab-checks/1"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one check said. ``status`` is passed, not yet, or not reached; ``report`` is its text where it failed."""

    piece: str
    status: str
    report: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """A cell that ended with an exception which is no check's: its number among the code cells, and the exception."""

    cell: int
    error: str
    message: str


def check(notebooks: Sequence[Path], *, json_out: Path | None, timeout: int) -> int:
    """Check ``notebooks``, print a line for each check, and write all as JSON into ``json_out``. 0 if all passed.

    Each cell may take ``timeout`` seconds. The notebooks stay as they are. Raises `CommandError`.
    """
    found: list[dict[str, Any]] = []
    complete = True
    for path in notebooks:
        outcomes, stops = run(path, timeout)
        passed = sum(one.status == "passed" for one in outcomes)
        complete = complete and passed == len(outcomes)
        typer.echo(f"{path}: {passed} of {len(outcomes)} checks passed.")
        print_table(["check", "status"], [[one.piece, one.status] for one in outcomes], left=2)
        for stop in stops:
            typer.echo(f"  code cell {stop.cell} stopped: {stop.error}: {stop.message}")
        found.append(
            {
                "notebook": path.as_posix(),
                "passed": passed,
                "checks": [asdict(one) for one in outcomes],
                "stopped": [asdict(one) for one in stops],
            }
        )
    if json_out is not None:
        with output_file(json_out) as made:
            text = json.dumps({"format": FORMAT, "notebooks": found}, indent=1, ensure_ascii=False)
            made.write_text(text + "\n", encoding="utf-8", newline="\n")
    return 0 if complete else 1


def run(path: Path, timeout: int) -> tuple[list[Outcome], list[Stop]]:
    """Run the notebook ``path`` in a kernel of its own, in its own folder, past every error."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    try:
        nb = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    except OSError as error:
        raise CommandError(f"{path} cannot be opened: {error.strerror}") from None
    except Exception as error:
        words = str(error).strip().splitlines()
        raise CommandError(f"{path} is no notebook: {words[0] if words else type(error).__name__}") from None
    stops: list[Stop] = []
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            nb, timeout=timeout, startup_timeout=180, allow_errors=True, kernel_name="python3",
            resources={"metadata": {"path": str(path.resolve().parent)}},
        )  # fmt: skip
        try:
            # Handed to this kernel alone: a student's own progress is not to be overwritten.
            client.execute(env={**os.environ, VARIABLE: folder, keep.VARIABLE: ""})
        except (CellTimeoutError, DeadKernelError) as error:
            words = str(error).strip().splitlines()
            stops.append(Stop(0, type(error).__name__, words[0] if words else "the kernel ended"))
        passed = read_outcomes(Path(folder))
    code = [cell for cell in nb.cells if cell.cell_type == "code"]
    outcomes: dict[str, Outcome] = {}
    for number, cell in enumerate(code, 1):
        stop = next((one for one in cell.outputs if one.output_type == "error"), None)
        pieces = list(_pieces(cell.source))
        for piece in pieces:
            if passed.get(piece) is True:
                outcomes.setdefault(piece, Outcome(piece, "passed"))
            elif piece in passed:
                outcomes[piece] = Outcome(piece, "not yet", stop.evalue if stop is not None else "")
            else:
                outcomes.setdefault(piece, Outcome(piece, "not reached", stop.evalue if stop is not None else ""))
        if stop is not None and stop.ename != "CheckFailed":
            stops.append(Stop(number, stop.ename, _first(stop.evalue)))
    return list(outcomes.values()), stops


def _pieces(source: str) -> Iterator[str]:
    """The pieces that ``source`` checks, in order."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name("check"), [ast.Constant(str(piece)), *_]):
                yield piece


def _first(text: Any) -> str:
    return (str(text).strip().splitlines() or [""])[0][:300]
