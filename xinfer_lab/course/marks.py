"""What a marked notebook says of itself: of which version of what it is the marking, and how its grade cells came out.

It stands in the notebook's metadata, which is written once the gradebook has the marks: where it is, the marks are
complete.
"""

from __future__ import annotations

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
    """``submission`` and ``release`` are the versions that were marked; ``statuses`` are by grade cell. ``trouble`` is
    why it was not marked, or empty.
    """

    submission: str
    release: str
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
        "submission": marked.version,
        "release": lab.version,
        "sandbox": marked.sandbox,
        "isolated": marked.isolated,
        "trouble": marked.trouble,
        "notes": list(marked.marking.notes),
        "statuses": {verdict.grade_id: verdict.status.value for verdict in marked.marking.verdicts},
    }


def read_marks(path: Path) -> Marks | None:
    """The marks in the marked notebook ``path``; None where it is not there or not marked to its end."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))["metadata"]["xinfer_lab"]
        return Marks(
            str(data["submission"]),
            str(data["release"]),
            str(data["sandbox"]),
            bool(data["isolated"]),
            str(data["trouble"]),
            tuple(map(str, data["notes"])),
            {str(name): Status(status) for name, status in data["statuses"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
