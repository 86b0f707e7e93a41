"""One job of a class: mark one submission, in whatever process or machine it lands."""

from __future__ import annotations

import atexit
import contextlib
import functools
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from xinfer_lab.course.clean import plain
from xinfer_lab.course.handed_in import HandedIn
from xinfer_lab.course.lab import Lab
from xinfer_lab.course.mark_submission import Marker, seeds_of
from xinfer_lab.course.notebook import Notebook
from xinfer_lab.course.package_view import PACKAGE, fingerprint
from xinfer_lab.course.recorder_client import RecordLimits
from xinfer_lab.course.sandbox import open_sandbox
from xinfer_lab.course.taken import take
from xinfer_lab.course.transplant import transplant
from xinfer_lab.course.verdict import Marking, Status, Verdict
from xinfer_lab.grading.report import Report

__all__ = [
    "How",
    "Job",
    "Marked",
    "close_markers",
    "grader_of",
    "mark_job",
    "marked_by",
    "not_marked",
    "nothing_to_mark",
]

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
    """The result of a job: the notebook that was taken, without outputs, and its marking.

    ``handed_in`` are the version and the signature of the submission, ``sandbox`` says where its code ran, ``grader``
    is the fingerprint of the package that marked and ``at`` when, as ISO 8601 in UTC. ``trouble`` is why it was not
    marked, or empty; ``unreadable`` says that the trouble lies in what was handed in, and not in marking.
    """

    notebook: Notebook
    marking: Marking
    handed_in: tuple[str, str]
    sandbox: str
    isolated: bool
    grader: str
    at: str
    trouble: str = ""
    unreadable: bool = False


def mark_job(job: Job) -> Marked:
    """Mark ``job``.

    Raises `MarkingError` or `NoSandbox` where this process cannot mark anything, and `Killed` where something outside
    ended what it had started.
    """
    with _memory(READING):
        taken = take(job.lab, job.handed_in)
    if taken.trouble:
        return nothing_to_mark(job.lab, job.handed_in, taken.trouble, taken.notes)
    marker = _marker(job.how)
    marking = marker.mark(job.lab, taken.notebook, taken.notes)
    return marked_by(marker, taken.notebook, marking, job.handed_in)


def marked_by(marker: Marker, notebook: Notebook, marking: Marking, handed_in: HandedIn) -> Marked:
    """``marking`` of ``notebook``, with who made it, where and when."""
    version = handed_in.version, handed_in.signature
    sandbox = marker.sandbox
    return Marked(notebook, marking, version, sandbox.words, sandbox.isolated, grader_of(marker.package), _now())


def nothing_to_mark(lab: Lab, handed_in: HandedIn, why: str, notes: tuple[str, ...]) -> Marked:
    """What is written for a submission in which there is nothing to mark: no points, and the reason."""
    hint = "Hand in the notebook again: save it, check that it opens, and give in that one file."
    return _without_marks(lab, handed_in, why, notes, hint, unreadable=True)


def not_marked(lab: Lab, handed_in: HandedIn, why: str) -> Marked:
    """What is written for a submission whose marking did not finish: no points, and the reason."""
    why = plain(why)
    hint = "Your instructor runs the marking again; see that your notebook runs from top to bottom."
    return _without_marks(lab, handed_in, why, (), hint, unreadable=False)


def _without_marks(
    lab: Lab, handed_in: HandedIn, why: str, notes: tuple[str, ...], hint: str, *, unreadable: bool
) -> Marked:
    verdicts = tuple(
        Verdict(graded.grade_id, graded.points, Status.BY_HAND)
        if graded.by_hand
        else Verdict(
            graded.grade_id,
            graded.points,
            Status.NOT_MARKED,
            Report(graded.checks[0].piece, False, "This notebook was not marked.", got=why, hint=hint),
        )
        for graded in lab.graded
    )
    # As it was released: it holds no answer, so nobody is asked to read one.
    marking = Marking(
        verdicts, (f"This notebook was not marked: {why}.", *notes), transplant(lab.released, lab.released), {}
    )
    version = handed_in.version, handed_in.signature
    return Marked(lab.released, marking, version, "", False, grader_of(PACKAGE), _now(), why, unreadable)


@functools.cache
def grader_of(package: Path) -> str:
    """The fingerprint of the package in the folder ``package``, as a mark names it."""
    return fingerprint(package)[:16]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


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
