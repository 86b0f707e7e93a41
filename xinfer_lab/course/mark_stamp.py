"""The stamp in a marked notebook: which version of the submission was marked, and each cell's verdict.

It is in the notebook's metadata, which is written once the gradebook has the marks: where it is, the marks are
complete.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xinfer_lab.course.job import Marked
from xinfer_lab.course.lab import Lab
from xinfer_lab.course.verdict import Status

__all__ = ["Marks", "marks_to_data", "read_marks"]


@dataclass(frozen=True, slots=True)
class Marks:
    """``submission`` and ``release`` are the versions that were marked, ``signature`` that of the submission's files;
    ``grader`` marked them ``at`` a time. ``statuses`` are by grade cell. ``trouble`` is why it was not marked, or
    empty.
    """

    submission: str
    signature: str
    release: str
    grader: str
    at: str
    sandbox: str
    isolated: bool
    trouble: str
    notes: tuple[str, ...]
    statuses: Mapping[str, Status]

    def are_of(self, submission: str, release: str) -> bool:
        """Whether these are complete marks of that version of a submission and of a lab."""
        return not self.trouble and (self.submission, self.release) == (submission, release)


def marks_to_data(marked: Marked, lab: Lab) -> dict[str, Any]:
    """What `read_marks` reads, as plain JSON."""
    return {
        "submission": marked.handed_in[0],
        "signature": marked.handed_in[1],
        "release": lab.version,
        "grader": marked.grader,
        "at": marked.at,
        "sandbox": marked.sandbox,
        "isolated": marked.isolated,
        "trouble": marked.trouble,
        "notes": list(marked.marking.notes),
        "streams": dict(marked.marking.streams),
        "statuses": {verdict.grade_id: verdict.status.value for verdict in marked.marking.verdicts},
    }


def read_marks(path: Path) -> Marks | None:
    """The marks in the marked notebook ``path``; None where it is not there or not marked to its end."""
    try:
        data = _metadata(path)["xinfer_lab"]
        return Marks(
            str(data["submission"]),
            str(data.get("signature", "")),
            str(data["release"]),
            str(data.get("grader", "")),
            str(data.get("at", "")),
            str(data["sandbox"]),
            bool(data["isolated"]),
            str(data["trouble"]),
            tuple(map(str, data["notes"])),
            {str(name): Status(status) for name, status in data["statuses"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


TAIL = 64 * 2**10
"""Bytes at the end of a marked notebook in which its metadata stand, as they are written."""

TOP = b'\n "metadata": {'
"""How the metadata of the notebook itself begin. Strings of JSON hold no line end, so no cell has the like."""


def _metadata(path: Path) -> Any:
    """The metadata of the notebook ``path``: from its last bytes, since a class has thousands of notebooks."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - TAIL))
        tail = file.read()
    at = tail.rfind(TOP)
    if at >= 0:
        with contextlib.suppress(ValueError):
            return json.loads(b"{" + tail[at:])["metadata"]
    return json.loads(path.read_text(encoding="utf-8"))["metadata"]
