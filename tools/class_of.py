"""Mark a made-up class in one command, twice, and compare every mark with what it has to be.

Prints how each kind came out and how long it took with one worker and with two. Status 1 if any mark is not the one
that it has to be, or differs between the two times.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.class_submissions import ASSIGNMENT, NAME, Submission, hand_in, make_class  # noqa: E402
from xinfer_lab.course.mark_stamp import read_marks  # noqa: E402
from xinfer_lab.course.sandbox import open_sandbox  # noqa: E402


def course(folder: Path, made: list[Submission]) -> Path:
    """A course in ``folder`` with the class's submissions."""
    for name in ("solutions", "labs"):
        shutil.copytree(ROOT / name / ASSIGNMENT, folder / name / ASSIGNMENT)
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    for one in made:
        hand_in(one, folder / "submitted")
    return folder


def run(folder: Path, *arguments: str) -> tuple[str, float]:
    """What ``xinfer-lab ARGUMENTS`` prints in the course in ``folder``, and the seconds that it took."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "xinfer_lab", *arguments, "--root", str(folder)],
        cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    if done.returncode > 1:
        raise SystemExit(f"xinfer-lab {' '.join(arguments)} ended with status {done.returncode}:\n{done.stdout}")
    return done.stdout, time.monotonic() - began


def judge(folder: Path, made: list[Submission]) -> tuple[list[str], dict[str, str]]:
    """What is wrong with the marks, and every student's score, status and losses as exported."""
    table, _ = run(folder, "export", ASSIGNMENT)
    exported = {row["student"]: row for row in csv.DictReader(table.splitlines())}
    points = {row["student"]: f"{row['score']} {row['status']} {row['lost']}" for row in exported.values()}
    faults = []
    for one in made:
        marks = read_marks(folder / "autograded" / one.student / ASSIGNMENT / NAME)
        if marks is None:
            faults.append(f"{one.student} ({one.what}) has no marks")
            continue
        statuses = {name: status.value for name, status in marks.statuses.items()}
        faults += one.faults(statuses, marks.notes)
        marked = exported[one.student]["status"] in ("marked", "to be graded by hand")
        if marked == one.unreadable:
            faults.append(f"{one.student} ({one.what}) is exported as {exported[one.student]['status']}")
    return faults, points


def main() -> int:
    """Make, mark, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--students", type=int, default=200, help="how many hand in (default: 200)")
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 1], help="workers of each time (default: 2 1)")
    parser.add_argument("--keep", type=Path, help="leave the courses in this folder")
    asked = parser.parse_args()
    made = list(make_class(asked.students, bombs=open_sandbox("auto").isolated))
    kinds: dict[str, int] = {}
    for one in made:
        kinds[one.what.split("/")[2] if "/" in one.what else one.what] = (
            kinds.get(one.what.split("/")[2] if "/" in one.what else one.what, 0) + 1
        )
    print(f"{len(made)} submissions: " + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))
    faults: list[str] = []
    results, times = [], []
    with tempfile.TemporaryDirectory(prefix="xinfer-lab-class-") as scratch:
        for number, workers in enumerate(asked.workers):
            folder = course((asked.keep or Path(scratch)) / f"{number}-{workers}", made)
            said, seconds = run(folder, "autograde", ASSIGNMENT, "--jobs", str(workers))
            print(said.strip())
            found, points = judge(folder, made)
            faults += found
            results.append(points)
            times.append(seconds)
            print(f"{workers} workers: {seconds:.0f} s, {seconds / len(made):.2f} s a submission")
    for other in results[1:]:
        faults += [
            f"{student}: {points} one time, {other[student]} another"
            for student, points in results[0].items()
            if other[student] != points
        ]
    slowest = max(range(len(times)), key=lambda place: times[place])
    for workers, seconds in zip(asked.workers, times, strict=True):
        if workers > asked.workers[slowest]:
            print(f"{workers} workers are {times[slowest] / seconds:.2f} times as fast as {asked.workers[slowest]}")
    print("\n".join(faults[:40]) or f"All {len(made)} marks are right, and the same each time.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
