"""The table of a class as Canvas and Moodle take it: a row for each student, a column for each lab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xinfer_lab.course.export import Row

__all__ = ["FORMATS", "Table", "table_for"]

FORMATS = ("csv", "canvas", "moodle")

Table = list[list[str]]

READY = "marked"
"""The status of a score that is complete. Another is left out: an empty cell leaves the grade there is as it is."""


def table_for(kind: str, rows: Sequence[Row], *, partial: bool) -> tuple[Table, list[str]]:
    """The table of ``kind`` ("canvas" or "moodle") for the export's ``rows``, and what was left empty, a line each.

    ``partial``: give the points of those too whose written answers nobody has graded yet.
    """
    labs = {row["lab"]: row["max_score"] for row in rows}
    people: dict[str, Row] = {}
    cells: dict[tuple[str, str], str] = {}
    empty: dict[tuple[str, str], int] = {}
    for row in rows:
        people.setdefault(row["student"], row)
        if row["score"] and (partial or row["status"] == READY):
            cells[row["student"], row["lab"]] = row["score"]
        else:
            key = row["lab"], row["status"].partition(":")[0]
            empty[key] = empty.get(key, 0) + 1
    lines = [f"{lab}: {count} left empty, {status}" for (lab, status), count in sorted(empty.items())]
    make = {"canvas": _canvas, "moodle": _moodle}[kind]
    return make(labs, people, cells), lines


def _canvas(labs: Mapping[str, str], people: Mapping[str, Row], cells: Mapping[tuple[str, str], str]) -> Table:
    head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *labs]
    table = [head, ["    Points Possible", "", "", "", "", *labs.values()]]
    for student, row in people.items():
        name = ", ".join(part for part in (row["last_name"], row["first_name"]) if part) or student
        table.append([name, row["lms_user_id"], "", student, "", *(cells.get((student, lab), "") for lab in labs)])
    return table


def _moodle(labs: Mapping[str, str], people: Mapping[str, Row], cells: Mapping[tuple[str, str], str]) -> Table:
    table = [["Username", "Email address", "First name", "Last name", *labs]]
    for student, row in people.items():
        about = [student, row["email"], row["first_name"], row["last_name"]]
        table.append([*about, *(cells.get((student, lab), "") for lab in labs)])
    return table
