"""One job of a class: mark one submission, in whatever process or machine it lands."""

from __future__ import annotations

import atexit
import contextlib
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from xinfer_lab.course.handed_in import HandedIn
from xinfer_lab.course.lab import Lab
from xinfer_lab.course.marking import Marker, seeds_of
from xinfer_lab.course.notebook import Notebook, UnreadableNotebook, choose_notebook, load_notebook
from xinfer_lab.course.package_view import PACKAGE
from xinfer_lab.course.recording import RecordLimits
from xinfer_lab.course.sandbox import open_sandbox
from xinfer_lab.course.transplant import transplant
from xinfer_lab.course.verdict import Marking, Status, Verdict
from xinfer_lab.grading.report import Report

__all__ = ["How", "Job", "Marked", "close_markers", "mark_job", "not_marked"]

READING = 3 * 2**30
"""Bytes that reading one file's JSON may take: a small file can be worth much memory."""


@dataclass(frozen=True, slots=True)
class How:
    """How a run marks, the same for each of its jobs.

    ``sandbox`` is a choice of `open_sandbox`; ``hidden`` are folders that no student's code may see; from ``secret``
    come the seeds of the hidden cases. ``package``: the folder of the package that marks, or None for the one that is
    installed where the job lands.
    """

    sandbox: str
    secret: str
    hidden: tuple[str, ...] = ()
    limits: RecordLimits | None = None
    package: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """The submission of one student: what was handed in, and the lab. No path of it is looked at where it lands."""

    student: str
    lab: Lab
    handed_in: HandedIn
    how: How


@dataclass(frozen=True, slots=True)
class Marked:
    """What became of a job: the notebook that was taken, without outputs, and its marking; ``sandbox`` says where its
    code ran. ``trouble`` is why it was not marked, or empty.
    """

    notebook: Notebook
    marking: Marking
    version: str
    sandbox: str
    isolated: bool
    trouble: str = ""


def mark_job(job: Job) -> Marked:
    """Mark ``job``. Raises `MarkingError` or `NoSandbox` where this process cannot mark anything."""
    with _memory(READING):
        notebook, notes = _notebook(job)
    marker = _marker(job.how)
    marking = marker.mark(job.lab, notebook, notes)
    return Marked(notebook, marking, job.handed_in.version, marker.sandbox.words, marker.sandbox.isolated)


def not_marked(job: Job, why: str) -> Marked:
    """What is written for a submission whose marking did not come to an end: no points, and the reason."""
    hint = "Your instructor runs the marking again; see that your notebook runs from top to bottom."
    verdicts = tuple(
        Verdict(graded.grade_id, graded.points, Status.BY_HAND)
        if graded.by_hand
        else Verdict(
            graded.grade_id,
            graded.points,
            Status.NOT_MARKED,
            Report(graded.grade_id, False, "This notebook was not marked.", got=why, hint=hint),
        )
        for graded in job.lab.graded
    )
    notebook = Notebook(())
    marking = Marking(verdicts, (f"This notebook was not marked: {why}.",), transplant(job.lab.released, notebook), {})
    return Marked(notebook, marking, job.handed_in.version, "", False, why)


def _notebook(job: Job) -> tuple[Notebook, tuple[str, ...]]:
    """The notebook to mark, and notes on how it was found."""
    name, files = job.lab.name, dict(job.handed_in.files)
    found: dict[str, Notebook | None] = {}
    trouble = list(job.handed_in.notes)
    for file, raw in files.items():
        try:
            found[file] = load_notebook(raw, file)
        except UnreadableNotebook as error:
            found[file] = None
            trouble.append(f"This notebook could not be read: {error}.")
    if name in found:
        return found[name] or Notebook(()), tuple(trouble)
    chosen, note = choose_notebook(name, found, job.lab.grade_ids)
    notes = (*trouble, *([note] if note else ()))
    return (found[chosen] if chosen else None) or Notebook(()), notes


@contextlib.contextmanager
def _memory(most: int) -> Iterator[None]:
    """Within the block this process may take ``most`` more bytes, where the system can hold it to that."""
    if sys.platform != "linux":
        yield
        return
    import resource

    with _READS:
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limit = psutil.Process().memory_info().vms + most
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


_READS = threading.Lock()

# A marker serves one job at a time, and one run. Dask's workers may have several threads.
_MARKERS: dict[int, tuple[How, Marker]] = {}
_LOCK = threading.Lock()


def _marker(how: How) -> Marker:
    """This thread's marker for ``how``; one of an earlier run is closed."""
    thread = threading.get_ident()
    known = _MARKERS.get(thread)
    if known is not None and known[0] == how:
        return known[1]
    if known is not None:
        known[1].close()
    sandbox = open_sandbox(how.sandbox, hidden=tuple(Path(folder) for folder in how.hidden))
    package = PACKAGE if how.package is None else Path(how.package)
    marker = Marker(sandbox, how.limits, package=package, seed_of=seeds_of(how.secret))
    with _LOCK:
        _MARKERS[thread] = how, marker
    return marker


def close_markers() -> None:
    """End what this process keeps between jobs."""
    with _LOCK:
        for _, marker in _MARKERS.values():
            marker.close()
        _MARKERS.clear()


atexit.register(close_markers)
