"""Marks one notebook and prints its verdicts.

    python -m xinfer_lab.course.mark_file residency.ipynb --lab lab1-residency

Run it in the course's folder, or name that with ``--root``. Status 0 if the notebook was marked, whatever the verdicts;
2 if not.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from xinfer_lab.course.lab import find_lab
from xinfer_lab.course.mark_submission import Marker, fresh_seed
from xinfer_lab.course.notebook import Notebook, UnreadableNotebook, read_notebook
from xinfer_lab.course.sandbox import CHOICES, NoSandbox, open_sandbox
from xinfer_lab.course.verdict import Marking
from xinfer_lab.course.verifier_client import MarkingError

__all__ = ["main", "table"]


def main(arguments: list[str] | None = None) -> int:
    """Mark the notebook that is named; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m xinfer_lab.course.mark_file", description="Mark one notebook and print its verdicts."
    )
    parser.add_argument("submission", type=Path, help="the notebook that was handed in")
    parser.add_argument("--lab", required=True, help="the lab's folder in solutions/, as in lab1-residency")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the course's folder (default: here)")
    parser.add_argument(
        "--sandbox", choices=CHOICES, default="auto", help="where the notebook's code runs (default: auto)"
    )
    parser.add_argument("--seed", type=int, help="draw the hidden cases from this seed instead of new ones")
    parser.add_argument("--json", action="store_true", help="print verdicts and reports as JSON")
    asked = parser.parse_args(arguments)
    root = asked.root.resolve()
    try:
        lab = find_lab(root, asked.lab)
        try:
            submitted = read_notebook(asked.submission, depth=2)
        except UnreadableNotebook as error:
            submitted = Notebook((), (f"This notebook could not be read: {error}.",))
        sandbox = open_sandbox(asked.sandbox, hidden=(root,))
        seed_of = fresh_seed if asked.seed is None else lambda piece: int(asked.seed)
        with Marker(sandbox, seed_of=seed_of) as marker:
            marking = marker.mark(lab, submitted)
    except (ValueError, NoSandbox, MarkingError) as error:
        print(error, file=sys.stderr)
        return 2
    if asked.json:
        print(json.dumps({"sandbox": sandbox.words, **marking.to_dict()}, indent=1))
    else:
        print(sandbox.words, table(marking), sep="\n\n")
    return 0


def table(marking: Marking) -> str:
    """The verdicts as text: one line each, the reports of what was lost below."""
    width = max((len(verdict.grade_id) for verdict in marking.verdicts), default=0)
    lines = []
    for verdict in marking.verdicts:
        score = "  -" if verdict.score is None else f"{verdict.score:3g}"
        lines.append(f"{verdict.grade_id:<{width}}  {score} of {verdict.points:g}  {verdict.status.value}")
    lines.append(f"{'total':<{width}}  {marking.score:3g} of {marking.points:g}")
    lines += ["", *marking.notes] if marking.notes else []
    for verdict in marking.verdicts:
        if verdict.report is not None and not verdict.report.passed:
            lines += ["", str(verdict.report)]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
