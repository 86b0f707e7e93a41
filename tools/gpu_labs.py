"""The labs on this machine's GPU and without it: the same notebooks, from top to bottom, must earn the same points.

    python tools/gpu_labs.py --out build/gpu-labs

Each notebook of solutions/ runs with the GPU in sight and again with none (then every device is an emulated one), and
so does each student's notebook of labs/ as it is released. What a run earned is counted twice: under its grade cells as
it ran, and by marking it as `nbgrader autograde` does. Prints a table; ends with status 1 if points differ, a solution
lacks any, a notebook that nobody filled in has any, a cell of a solution fails or writes to stderr, or a cell that
uses the GPU shows no timeline that was measured on it.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

WITH, WITHOUT = "GPU", "emulated"
SOLVED, BLANK = "solutions", "labs"
__all__ = ["Job", "Run", "chosen", "differences", "main", "measured", "run", "wrong_totals"]

NOTEBOOK_SECONDS = 600
"""What one notebook may take; only a hang takes as long."""
PICTURE = re.compile(r'<img class="xinfer-picture"[^>]* alt="([^"]*)"')
EVENTS = re.compile(r"(\d[\d,]*) events? in ([\d.,]+)\s*(\S+) on ([^.]+)\.")
MACHINE = r"""
import sys, torch
there = torch.cuda.is_available()
print(torch.cuda.get_device_name() if there else "", torch.__version__, sys.version.split()[0], sep="\n")
"""


@dataclass(frozen=True)
class Job:
    """One notebook to run: ``folder`` is solutions or labs, ``device`` is the GPU or emulated, ``gpu`` its name."""

    folder: str
    lab: str
    device: str
    gpu: str
    sandbox: str
    out: str

    @property
    def name(self) -> str:
        """A name for its files."""
        return f"{self.folder}-{self.lab}-{self.device.lower()}"


@dataclass
class Run:
    """What became of a job. ``in_notebook`` and ``marked`` are points by grade cell; ``faults`` are sentences."""

    name: str
    lab: str
    folder: str
    device: str
    seconds: float = 0.0
    in_notebook: dict[str, float] = field(default_factory=dict)
    marked: dict[str, float] = field(default_factory=dict)
    most: float = 0.0
    measured: list[str] = field(default_factory=list)
    sandbox: str = ""
    faults: list[str] = field(default_factory=list)


def main() -> int:
    """Run the labs; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "gpu-labs", help="where the results go")
    parser.add_argument("--labs", nargs="+", default=[""], help="beginnings of labs' names: lab3 lab5 (default: all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="notebooks at once (default: one a core)")
    parser.add_argument(
        "--sandbox", default="auto", help="where cells are recorded for marking: auto, bubblewrap, none"
    )
    parser.add_argument("--dry-run", action="store_true", help="go on without a GPU: both runs are emulated ones")
    asked = parser.parse_args()
    try:
        labs = chosen(asked.labs)
    except ValueError as error:
        parser.error(str(error))
    gpu, torch, python = _machine()
    if not gpu and not asked.dry_run:
        print("torch sees no GPU here; --dry-run goes through the steps without one", file=sys.stderr)
        return 2
    asked.out.mkdir(parents=True, exist_ok=True)
    jobs = [
        Job(folder, lab, device, gpu, asked.sandbox, str(asked.out.resolve()))
        for folder in (SOLVED, BLANK)
        for lab in labs
        for device in (WITH, WITHOUT)
    ]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as kept:
        with ProcessPoolExecutor(min(asked.jobs, len(jobs)), mp_context=get_context("spawn")) as pool:
            futures = [pool.submit(run, job, kept) for job in jobs]
            for done in as_completed(futures):
                print(f"{done.result().seconds:6.1f} s  {done.result().name}", file=sys.stderr, flush=True)
            runs = [future.result() for future in futures]
        _pack(Path(kept), asked.out)
    for solved, bare in zip(runs[::2], runs[1::2], strict=True):
        bare.faults += differences(solved, bare)
    seconds = time.monotonic() - began
    summary = {"gpu": gpu, "torch": torch, "python": python, "seconds": seconds, "runs": [asdict(one) for one in runs]}
    (asked.out / "summary.json").write_text(json.dumps(summary, indent=1), encoding="utf-8")
    table = "\n".join(_table(runs, gpu, torch, python, seconds))
    (asked.out / "table.txt").write_text(table + "\n", encoding="utf-8")
    print(table)
    return 1 if any(one.faults for one in runs) else 0


def chosen(beginnings: Sequence[str]) -> list[str]:
    """The labs whose names have one of the ``beginnings``. Raises ValueError where one is no lab's."""
    there = sorted(path.name for path in (ROOT / "solutions").iterdir() if path.is_dir())
    for beginning in beginnings:
        if not any(name.startswith(beginning) for name in there):
            raise ValueError(f"no lab's name begins with {beginning!r}; there are {', '.join(there)}")
    return [name for name in there if name.startswith(tuple(beginnings))]


def _machine() -> tuple[str, str, str]:
    """The GPU's name (empty without one), torch's version and Python's, asked of a process of its own."""
    done = subprocess.run([sys.executable, "-c", MACHINE], capture_output=True, text=True, check=True)
    gpu, torch, python = done.stdout.splitlines()
    return gpu, torch, python


def run(job: Job, kept: str) -> Run:
    """Execute the job's notebook, count its points, and keep it as executed in the folder ``kept``. What breaks is a
    fault of this run; the others go on."""
    one = Run(job.name, job.lab, job.folder, job.device)
    began = time.monotonic()
    try:
        _run(job, one, Path(kept))
    except Exception as error:
        one.faults.append(f"it broke off: {type(error).__name__}: {error}")
    one.seconds = time.monotonic() - began
    return one


def _run(job: Job, one: Run, kept: Path) -> None:
    import nbformat

    from xinfer_lab.course.lab import find_lab
    from xinfer_lab.course.mark_submission import Marker
    from xinfer_lab.course.notebook import parse_notebook
    from xinfer_lab.course.sandbox import open_sandbox

    lab = find_lab(ROOT, job.lab)
    one.most = sum(graded.points for graded in lab.graded if not graded.by_hand)
    executed = kept / f"{job.name}.ipynb"
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(shutil.copytree(ROOT / job.folder / job.lab, Path(scratch) / job.lab))
        _execute(place / lab.name, executed, job.device)
        notebook = nbformat.read(executed, as_version=4)
        by_hand = {graded.grade_id for graded in lab.graded if graded.by_hand}
        for cell in notebook.cells:
            if cell.cell_type == "code":
                _look(cell, job, one, by_hand)
        if job.folder == SOLVED and job.device == WITH:
            _html(notebook, place, Path(job.out) / f"{job.name}.html")
    sandbox = open_sandbox(job.sandbox, hidden=(ROOT,))
    one.sandbox = sandbox.words
    with Marker(sandbox) as marker:
        marking = marker.mark(lab, parse_notebook(notebook))
    for verdict in marking.verdicts:
        if verdict.score is not None:
            one.marked[verdict.grade_id] = verdict.score
            if job.folder == SOLVED and verdict.score < verdict.points:
                one.faults.append(
                    f"{verdict.grade_id} is marked {verdict.score:g} of {verdict.points:g}: {verdict.report}"
                )
    one.faults += wrong_totals(one)


def _execute(notebook: Path, executed: Path, device: str) -> None:
    """Run all cells of ``notebook`` in a process of its own, and write them as they then are to ``executed``."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    if device == WITHOUT:
        env["CUDA_VISIBLE_DEVICES"] = ""
    command = [sys.executable, "-m", "tools.plain_run", notebook.name, str(executed)]
    subprocess.run(command, cwd=notebook.parent, env=env, check=True, timeout=NOTEBOOK_SECONDS)


def _look(cell: Any, job: Job, one: Run, by_hand: set[str]) -> None:
    """Count the points of an executed code cell, and note what may not be there."""
    mark = cell.metadata.get("nbgrader") or {}
    said = [output for output in cell.outputs if output.get("name") != "stderr"]
    errors = [output for output in cell.outputs if output.output_type == "error"]
    stderr = "".join(output.text for output in cell.outputs if output.get("name") == "stderr")
    if mark.get("grade") and mark["grade_id"] not in by_hand:
        earned = bool(said) and not errors and not stderr
        one.in_notebook[mark["grade_id"]] = float(mark["points"]) if earned else 0.0
    if stderr:
        one.faults.append(f"the cell {cell.id} writes to stderr: {stderr.strip()[:300]}")
    if job.folder == SOLVED:
        one.faults += [f"the cell {cell.id} fails: {error.ename}: {error.evalue[:300]}" for error in errors]
        if "CudaDevice(" in cell.source:
            seen = list(measured(cell, job.gpu))
            one.measured += [f"{cell.id}: {words}" for words in seen]
            if job.device == WITH and job.gpu and not seen:
                one.faults.append(f"the cell {cell.id} shows no timeline that was measured on {job.gpu}")
            if job.device == WITHOUT and seen:
                one.faults.append(f"the cell {cell.id} shows a timeline of {job.gpu}, which it cannot see")


def measured(cell: Any, gpu: str) -> Iterator[str]:
    """What the pictures under a cell say of timelines measured on ``gpu``: events, how long, which clock."""
    for output in cell.outputs:
        for alt in PICTURE.findall("".join(output.get("data", {}).get("text/html", ""))):
            for count, time_taken, unit, clock in EVENTS.findall(html.unescape(alt)):
                if gpu and clock == gpu and int(count.replace(",", "")) > 0 and float(time_taken.replace(",", "")) > 0:
                    yield f"{count} events in {time_taken} {unit} on {clock}"


def _html(notebook: Any, place: Path, path: Path) -> None:
    """Write the executed notebook as one page, pictures included."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(embed_images=True)  # type: ignore[no-untyped-call]
    page, _ = exporter.from_notebook_node(notebook, resources={"metadata": {"path": str(place), "name": path.stem}})
    path.write_text(page, encoding="utf-8")


def wrong_totals(one: Run) -> list[str]:
    """Sentences where the points are not those that a solution, or a notebook that nobody filled in, must have."""
    wanted = one.most if one.folder == SOLVED else 0.0
    found = {"in the notebook": sum(one.in_notebook.values()), "marked": sum(one.marked.values())}
    faults = [f"{points:g} points {where}, not {wanted:g}" for where, points in found.items() if points != wanted]
    if one.in_notebook.keys() != one.marked.keys():
        faults.append(f"graded in one way alone: {sorted(one.in_notebook.keys() ^ one.marked.keys())}")
    return faults


def differences(first: Run, second: Run) -> list[str]:
    """Sentences on grade cells whose points are not the same in the two runs."""
    found = []
    for way in ("in_notebook", "marked"):
        one, other = getattr(first, way), getattr(second, way)
        for name in sorted(one.keys() | other.keys()):
            if one.get(name) != other.get(name):
                found.append(f"{name} has {one.get(name)} on {first.device} and {other.get(name)} on {second.device}")
    return found


def _pack(folder: Path, out: Path) -> None:
    """All executed notebooks in one file."""
    with zipfile.ZipFile(out / "executed.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.glob("*.ipynb")):
            archive.write(path, path.name)


def _table(runs: list[Run], gpu: str, torch: str, python: str, seconds: float) -> Iterator[str]:
    yield f"{gpu or 'no GPU: a dry run, both runs are emulated'}; torch {torch}, Python {python}; {seconds:.0f} s"
    yield f"marking: {runs[0].sandbox}"
    width = max(len(one.lab) for one in runs)
    yield f"{'lab':<{width}}  {'notebook':<9}  {'device':<8}  in notebook  marked  of  measured  seconds  faults"
    for one in runs:
        points = f"{sum(one.in_notebook.values()):11g}  {sum(one.marked.values()):6g}  {one.most:2g}"
        counts = f"{len(one.measured):8}  {one.seconds:7.1f}  {len(one.faults):6}"
        yield f"{one.lab:<{width}}  {one.folder:<9}  {one.device:<8}  {points}  {counts}"
    for one in runs:
        for words in one.measured:
            yield f"{one.name}: {words}"
    faults = [f"{one.name}: {fault}" for one in runs for fault in one.faults]
    yield "\n".join(["FAULTS", *faults]) if faults else "no faults: the same points on both, in every lab"


if __name__ == "__main__":
    sys.exit(main())
