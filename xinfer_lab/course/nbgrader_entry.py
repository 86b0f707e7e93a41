"""What nbgrader's own steps take of a submission: the notebook, by the course's way, and the time it was handed in.

nbgrader copies whatever lies beside a notebook, follows links when it does, and ends its run over a ``timestamp.txt``
that it cannot read. It has a setting for collecting, and none for the others: `guard` replaces those two functions.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from nbgrader.converters import Autograde
from nbgrader.converters.base import BaseConverter
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import ExchangeCollect

from xinfer_lab.course.clean import plain
from xinfer_lab.course.handed_in import TIMESTAMP, time_of
from xinfer_lab.course.plain_files import copy_plain, is_link, read_plain

__all__ = ["CollectPlain", "guard"]

_init_assignment = BaseConverter.init_assignment


def guard() -> None:
    """From now on nbgrader's autograde copies nothing from a submission but a time that can be read."""
    CourseDirectory.get_existing_timestamp = _existing_timestamp
    BaseConverter.init_assignment = _take_only_the_time


def _existing_timestamp(self: Any, dest_path: str) -> datetime | None:
    return time_of(Path(dest_path))[0]


def _take_only_the_time(self: Any, assignment_id: str, student_id: str) -> None:
    if not isinstance(self, Autograde):
        return _init_assignment(self, assignment_id, student_id)  # type: ignore[no-any-return]
    folder = Path(self._format_source(assignment_id, student_id))
    if time_of(folder)[0] is not None:
        marked = Path(self._format_dest(assignment_id, student_id))
        marked.mkdir(parents=True, exist_ok=True)
        (marked / TIMESTAMP).write_bytes(read_plain(folder / TIMESTAMP, 1000, depth=3)[0])
    return None


class CollectPlain(ExchangeCollect):  # type: ignore[misc]
    """nbgrader's collect, which takes no links and nothing of another account's, and goes on after what it cannot take.

    A folder of the exchange that is not its student's own, or has a name that says nothing, hides no other one.
    """

    src_records: list[dict[str, Any]]

    def _path_to_record(self, path: str) -> dict[str, Any]:
        try:
            record: dict[str, Any] = super()._path_to_record(path)
            why = _not_of(record["username"], Path(path)) if self.check_owner else ""
        except (Exception, SystemExit):
            record, why = {"filename": Path(path).name}, "its name is not STUDENT+LAB+TIME"
        # A name of its own: of each student's folders the latest is taken.
        return (
            record
            if not why
            else {"username": f"?{path}", "filename": record["filename"], "timestamp": _NEVER, "why": why}
        )

    def copy_files(self) -> None:
        """Copy the submissions, each for itself."""
        records: list[dict[str, Any]] = self.src_records
        refused = 0
        for record in records:
            self.src_records = [record]
            try:
                if "why" in record:
                    raise ValueError(record["why"])
                super().copy_files()
            except Exception as error:
                refused += 1
                self.log.error("%s was not collected: %s", plain(record["filename"]), error)
        self.src_records = records
        if refused:
            self.log.error("%d of %d submissions were not collected", refused, len(records))

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        """Copy one submission."""
        size, most = self.get_size(src), 1000 * self.coursedir.max_dir_size
        if size > most:
            raise ValueError(f"it has {size:,} bytes, and at most {most:,} are taken")
        for words in copy_plain(Path(src), Path(dest)):
            self.log.warning("%s: %s; it was left out", Path(src).name, plain(words))


_NEVER = datetime(1970, 1, 1)


def _not_of(student: str, folder: Path) -> str:
    """Why ``folder`` is not one that ``student`` handed in, or ''."""
    import pwd  # the exchange is not for Windows

    if is_link(folder):
        return "it is a link"
    if not student.strip(".") or "/" in student:
        return "its name names no student"
    try:
        owner = pwd.getpwuid(folder.lstat().st_uid).pw_name
    except KeyError:
        owner = "an unknown account"
    return "" if owner == student else f"it belongs to {owner}"
