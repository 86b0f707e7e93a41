"""A made-up class of thousands in all labs: a few notebooks marked for real, all others from those recordings.

Everything but the marking itself is what `xinfer-lab autograde` and `export` do: files are collected, jobs handed out,
marks stored by the one writer, the table written. Prints what marking costs on 2, 16 and 200 cores, and compares every
row of the table with what it has to be. Status 1 if one is not.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.answer_bank import answers, defines  # noqa: E402
from tests.notebooks import SOLUTIONS, submission  # noqa: E402
from xinfer_lab.cli.export import export  # noqa: E402
from xinfer_lab.course import autograde as running  # noqa: E402
from xinfer_lab.course.autograde import autograde  # noqa: E402
from xinfer_lab.course.gradebook import CourseBook  # noqa: E402
from xinfer_lab.course.job import Job, Marked, close_markers, mark_job  # noqa: E402
from xinfer_lab.course.lab import Lab, find_lab  # noqa: E402
from xinfer_lab.course.workers import Workers  # noqa: E402

CORES = (2, 16, 200)


def notebooks(source: Path, count: int) -> Iterator[tuple[str, bytes]]:
    """``count`` notebooks of one lab, each with a word: solved, as released, then solved in the bank's other ways."""
    lab = source.parent.name.partition("-")[0]
    yield "solved", json.dumps(submission(source)).encode()
    yield "released", (ROOT / "labs" / source.parent.name / source.name).read_bytes()
    for answer in [one for one in answers("correct") if one.lab == lab][: count - 2]:
        text = answer.path.read_text(encoding="utf-8")

        def change(cell: str, there: str, text: str = text, function: str = answer.function) -> str:
            return text if defines(there, function) else there

        yield "solved", json.dumps(submission(source, change)).encode()


def really(lab: Lab, made: list[tuple[str, bytes]], course: Path) -> tuple[dict[bytes, Marked], list[float]]:
    """Mark ``made``; the markings by content, and the CPU seconds of each, the start of its processes included."""
    from xinfer_lab.course.handed_in import File, HandedIn
    from xinfer_lab.course.job import How

    known, spent = {}, []
    for _, raw in made:
        handed_in = HandedIn((File(lab.name, raw, 0.0),), (), (), (), "", "")
        before = sum(os.times()[:4])
        known[raw] = mark_job(Job("one", lab, handed_in, How("auto", "simulated", (str(course),))))
        close_markers()  # so that their children's time is counted here
        spent.append(sum(os.times()[:4]) - before)
    return known, spent


def main() -> int:
    """Make, mark, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--students", type=int, default=2000, help="how many hand in each lab (default: 2000)")
    parser.add_argument("--real", type=int, default=40, help="notebooks that are marked for real, of all labs together")
    parser.add_argument("--labs", type=int, nargs="+", default=[], help="only the labs of these numbers")
    parser.add_argument("--keep", type=Path, help="leave the course in this folder")
    asked = parser.parse_args()
    sources = [path for path in SOLUTIONS if not asked.labs or int(path.parent.name[3]) in asked.labs]
    faults: list[str] = []
    rows = []
    with tempfile.TemporaryDirectory(prefix="xinfer-lab-simulated-") as scratch:
        course = asked.keep or Path(scratch)
        for source in sources:
            for folder in ("solutions", "labs"):
                shutil.copytree(ROOT / folder / source.parent.name, course / folder / source.parent.name)
        shutil.copy(ROOT / "nbgrader_config.py", course)
        book, wanted = CourseBook(course), {}
        for source in sources:
            lab = find_lab(course, source.parent.name)
            made = list(notebooks(source, max(2, asked.real // len(sources))))
            known, spent = really(lab, made, course)
            most = sum(graded.points for graded in lab.graded if not graded.by_hand)
            for number in range(asked.students):
                what, raw = made[number % len(made)]
                folder = course / "submitted" / f"student-{number:05}" / lab.assignment
                folder.mkdir(parents=True)
                (folder / lab.name).write_bytes(raw)
                wanted[folder.parent.name, lab.assignment] = f"{most if what == 'solved' else 0:g}"
            writer = mark_from(book, lab, known)
            solved = [seconds for (what, _), seconds in zip(made, spent, strict=True) if what == "solved"]
            rows.append((lab.assignment, sum(solved) / len(solved), writer / asked.students))
            print(
                f"{lab.assignment}: {len(made)} marked for real, {asked.students} stored in {writer:.1f} s", flush=True
            )
        began = time.monotonic()
        export([], out=course / "marks.csv", root=course)
        exported = time.monotonic() - began
        with (course / "marks.csv").open(encoding="utf-8", newline="") as file:
            table = {(row["student"], row["lab"]): row for row in csv.DictReader(file)}
    for key, points in wanted.items():
        if key not in table or table[key]["score"] != points:
            faults.append(f"{key}: {table.get(key, {}).get('score')!r} in the table, {points} wanted")
    print_costs(rows, asked.students, exported)
    print("\n".join(faults[:20]) or f"All {len(wanted)} marks are right.")
    return 1 if faults else 0


def mark_from(book: CourseBook, lab: Lab, known: dict[bytes, Marked]) -> float:
    """Mark the class from the recordings ``known``; the seconds that the run took, which are its writer's."""

    def recorded(job: Job) -> Marked:
        (file,) = job.handed_in.files
        version = job.handed_in.version, job.handed_in.signature
        return dataclasses.replace(known[file.content], handed_in=version)

    book.prepare(lab)
    began = time.monotonic()
    with ThreadPoolExecutor(1) as executor, patch.object(running, "mark_job", recorded):
        autograde(book, lab, Workers(executor, lambda: 50, (), "from recordings"))
    return time.monotonic() - began


def print_costs(rows: list[tuple[str, float, float]], students: int, exported: float) -> None:
    """The table: CPU seconds a notebook, the writer's, and how long a class takes on some numbers of cores."""
    head = ["lab", "CPU s a notebook", "writer s a student", *(f"{cores} cores" for cores in CORES)]
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
    for lab, cpu, writer in [*rows, ("all", sum(row[1] for row in rows), sum(row[2] for row in rows))]:
        walls = [max(students * cpu / cores, students * writer) / 60 for cores in CORES]
        print(f"| {lab} | {cpu:.1f} | {writer:.3f} | " + " | ".join(f"{wall:.0f} min" for wall in walls) + " |")
    print(f"The table of {students} students in {len(rows)} labs was written in {exported:.1f} s.")


if __name__ == "__main__":
    sys.exit(main())
