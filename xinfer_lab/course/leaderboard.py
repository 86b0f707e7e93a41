"""Ranks students by how near their plans of Lab 6 come to the bound; runs the plans again and checks claims.

    python -m xinfer_lab.course.leaderboard submitted/*/lab6-beat-the-link/beat_the_link.ipynb --seed 2026

Nothing that a student wrote down is believed: each plan is recorded in the sandbox and verified apart, as in marking.
``--claims FILE`` has lines that were posted elsewhere, each with the path of its notebook in front of it. Status 0 if
every claim is confirmed, 1 if one is not, 2 if the race could not be run.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from xinfer_lab.course.clean import plain
from xinfer_lab.course.grade_cells import Check
from xinfer_lab.course.lab import Lab, find_lab
from xinfer_lab.course.mark_submission import Marker
from xinfer_lab.course.notebook import LARGEST_FILE, Notebook, UnreadableNotebook, read_notebook
from xinfer_lab.course.plain_files import read_plain
from xinfer_lab.course.sandbox import CHOICES, NoSandbox, open_sandbox
from xinfer_lab.course.verifier_client import MarkingError
from xinfer_lab.labs.lab6.given.race import RACE
from xinfer_lab.labs.lab6.race_line import RaceLine, find_lines

__all__ = ["MOST_CLAIMS", "Entry", "claims_in", "main", "only_the_race", "rank", "table"]


MOST_CLAIMS = 5
"""Lines of one notebook that are run again."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One submission: its line for the common seed, or what keeps it from one; each claim, and what running it again
    gave (None: it did not run)."""

    name: str
    line: RaceLine | None
    trouble: str = ""
    claims: tuple[tuple[RaceLine, RaceLine | None], ...] = ()

    @property
    def honest(self) -> bool:
        """Whether every claim is what running it again gives."""
        return all(claimed == found for claimed, found in self.claims)


def only_the_race(lab: Lab, seed: int) -> Lab:
    """``lab`` with a single graded cell, the gate's, which asks the cases drawn from ``seed``. Raises ValueError."""
    for graded in lab.graded:
        asked = [check for check in graded.checks if check.piece == RACE]
        if asked:
            check = Check(RACE, asked[0].expression, seed)
            return dataclasses.replace(lab, graded=(dataclasses.replace(graded, checks=(check,)),))
    raise ValueError(f"{lab.assignment} has no cell that checks {RACE}")


def claims_in(path: Path) -> list[RaceLine]:
    """The first lines that stand in the outputs of the notebook at ``path``, each once."""
    try:
        cells = json.loads(read_plain(path, LARGEST_FILE, depth=3)[0]).get("cells", [])
        text = "\n".join("".join(output.get("text", "")) for cell in cells for output in cell.get("outputs", []))
        return list(dict.fromkeys(find_lines(text)))[:MOST_CLAIMS]
    except (OSError, ValueError, AttributeError, TypeError, RecursionError, MemoryError):
        return []


def rank(
    lab: Lab, submissions: Mapping[str, Notebook], claims: Mapping[str, Sequence[RaceLine]], seed: int, marker: Marker
) -> list[Entry]:
    """All submissions, run on the cases of ``seed``, the best first; those without a line last."""
    entries = []
    for name, notebook in submissions.items():
        # One budget for a submission, however much it claims: a claim that time did not reach is not confirmed.
        until = time.monotonic() + marker.budget
        line, trouble = _run(lab, notebook, seed, marker, until)
        checked = [(claim, _run(lab, notebook, claim.seed, marker, until)[0]) for claim in claims.get(name, ())]
        entries.append(Entry(name, line, trouble, tuple(checked)))
    return sorted(entries, key=lambda entry: (-entry.line.score if entry.line else 1.0, entry.name))


def _run(lab: Lab, notebook: Notebook, seed: int, marker: Marker, until: float) -> tuple[RaceLine | None, str]:
    if time.monotonic() > until:
        return None, "the time for this notebook was up"
    (verdict,) = marker.mark(only_the_race(lab, seed), notebook, until=until).verdicts
    report = verdict.report
    if report is None or not report.passed:
        return None, report.headline if report else verdict.status.value
    return find_lines(report.headline)[0], ""


def table(entries: Iterable[Entry]) -> str:
    """The ranking as text, with a remark for each claim."""
    lines = []
    for place, entry in enumerate(entries, 1):
        result = str(entry.line) if entry.line else f"no line: {entry.trouble}"
        lines.append(f"{place:>3}  {plain(entry.name)}  {result}")
        for claimed, found in entry.claims:
            if claimed == found:
                lines.append(f"       claim confirmed: {claimed}")
            else:
                lines.append(f"       claim NOT confirmed: {claimed}")
                lines.append(f"       run again it is:     {found if found else 'no line'}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the race; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m xinfer_lab.course.leaderboard", description=__doc__.splitlines()[0]
    )
    parser.add_argument("submissions", type=Path, nargs="+", help="notebooks that were handed in")
    parser.add_argument("--seed", type=int, required=True, help="the cases that all of them are run on")
    parser.add_argument("--claims", type=Path, help="a file with a notebook's path and a line on each row")
    parser.add_argument("--lab", default="lab6-beat-the-link", help="the lab's folder in solutions/")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the course's folder (default: here)")
    parser.add_argument("--sandbox", choices=CHOICES, default="auto", help="where the plans run (default: auto)")
    asked = parser.parse_args(arguments)
    root = asked.root.resolve()
    try:
        lab = find_lab(root, asked.lab)
        posted = asked.claims.read_text(encoding="utf-8").splitlines() if asked.claims else []
        sandbox = open_sandbox(asked.sandbox, hidden=(root,))
        notebooks, claims = {}, {}
        for path in asked.submissions:
            name = str(path)
            try:
                notebooks[name] = read_notebook(path, depth=3)
            except UnreadableNotebook as error:
                notebooks[name] = Notebook((), (f"This notebook could not be read: {error}.",))
            elsewhere = [line for row in posted if row.startswith(f"{name} ") for line in find_lines(row)]
            claims[name] = list(dict.fromkeys([*elsewhere, *claims_in(path)]))[:MOST_CLAIMS]
        with Marker(sandbox) as marker:
            entries = rank(lab, notebooks, claims, asked.seed, marker)
    except (OSError, ValueError, NoSandbox, MarkingError) as error:
        print(error, file=sys.stderr)
        return 2
    print(sandbox.words, table(entries), sep="\n\n")
    return 0 if all(entry.honest for entry in entries) else 1


if __name__ == "__main__":
    sys.exit(main())
