"""Who is in the class and when labs are due: from a file of Canvas, Moodle or one of your own into the gradebook."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from xinfer_lab.course.gradebook import CourseBook

__all__ = ["Person", "RosterError", "due_of", "enrol", "read_roster", "set_due"]

COLUMNS: Mapping[str, Sequence[str]] = {
    "student": ("student", "student_id", "sis login id", "username", "login", "id number", "idnumber"),
    "first_name": ("first_name", "first name", "firstname", "given name"),
    "last_name": ("last_name", "last name", "lastname", "surname", "family name"),
    "email": ("email", "email address", "e-mail", "mail"),
    "lms_user_id": ("lms_user_id", "id"),
}
"""What a column may be called, in the order in which names are tried. Canvas's "Student" is a full name."""

_NAME = re.compile(r"[^\s+/\\]+")
"""What nbgrader takes for a student: it is the name of a folder, in which its configuration divides at ``+``."""


class RosterError(ValueError):
    """A roster or a date that cannot be taken; the message says where and what to do."""


@dataclass(frozen=True, slots=True)
class Person:
    """One student. ``student`` is the name of their folder in submitted/; the others may be empty."""

    student: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    lms_user_id: str = ""


def read_roster(raw: bytes) -> list[Person]:
    """The people in a CSV file with the content ``raw``. Raises `RosterError`."""
    rows = _rows(raw)
    if not rows:
        raise RosterError("the roster is empty")
    header = [name.strip().lower() for name in rows[0]]
    canvas = "sis login id" in header
    places = _places(header, canvas)
    if "student" not in places:
        names = ", ".join(rows[0]) or "none"
        raise RosterError(
            f"the roster has no column of students' names for the computer: it has {names}; wanted is one called "
            "student, username or SIS Login ID"
        )
    found: dict[str, Person] = {}
    for number, row in enumerate(rows[1:], 2):
        about = {name: row[place].strip() for name, place in places.items() if place < len(row)}
        full = row[header.index("student")].strip() if canvas and "student" in header else ""
        if not about.get("student") and (not any(row) or full.lower() in ("points possible", "student, test")):
            continue  # rows of Canvas's own
        person = _person(about, full, number)
        if person.student in found:
            raise RosterError(f"line {number} of the roster has {person.student} a second time")
        found[person.student] = person
    return list(found.values())


def _rows(raw: bytes) -> list[list[str]]:
    codes = ["utf-16"] if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else ["utf-8-sig", "cp1252"]
    for code in codes:
        try:
            text = raw.decode(code)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            first = text.splitlines()[0] if text.strip() else ""
            divider = max(",;\t", key=first.count)
            return [row for row in csv.reader(io.StringIO(text), delimiter=divider) if any(row)]
    raise RosterError("the roster is no text in UTF-8; save it as CSV in UTF-8")


def _places(header: Sequence[str], canvas: bool) -> dict[str, int]:
    places = {}
    for column, names in COLUMNS.items():
        for name in names:
            if name in header and not (canvas and name == "student") and not (name == "id" and not canvas):
                places[column] = header.index(name)
                break
    return places


def _person(about: Mapping[str, str], full: str, number: int) -> Person:
    student = about.get("student", "")
    if not _NAME.fullmatch(student) or student.startswith("."):
        raise RosterError(
            f"line {number} of the roster has the name {student!r}; nbgrader takes one word without + and slashes"
        )
    last, _, first = full.partition(",")
    return Person(
        student,
        about.get("first_name") or first.strip(),
        about.get("last_name") or last.strip(),
        about.get("email", ""),
        about.get("lms_user_id", ""),
    )


def enrol(book: CourseBook, people: Sequence[Person]) -> tuple[int, int]:
    """Put ``people`` into the gradebook; how many were new, and how many changed. Nobody is taken out."""
    from nbgrader.api import Student

    new = changed = 0
    with book.gradebook() as opened:
        db = opened.db
        known = {one.id: one for one in db.query(Student)}
        for person in people:
            about = {
                name: getattr(person, name)
                for name in ("first_name", "last_name", "email", "lms_user_id")
                if getattr(person, name)
            }
            there = known.get(person.student)
            if there is None:
                db.add(Student(id=person.student, **about))
                new += 1
            elif any(getattr(there, name) != value for name, value in about.items()):
                changed += 1
                for name, value in about.items():
                    setattr(there, name, value)
        db.commit()
    return new, changed


def due_of(book: CourseBook, lab: str) -> datetime | None:
    """When ``lab`` is due, in UTC; None where nothing is said."""
    from nbgrader.api import MissingEntry

    with book.gradebook() as opened:
        try:
            found: datetime | None = opened.find_assignment(lab).duedate
        except MissingEntry:
            raise RosterError(
                f"the gradebook does not know {lab}; release it first: xinfer-lab release {lab}"
            ) from None
    return None if found is None else found.replace(tzinfo=UTC)


def set_due(book: CourseBook, lab: str, when: str | None) -> datetime | None:
    """Let ``lab`` be due at ``when``, ISO 8601 with the time zone, or at no time for None; the time in UTC."""
    due_of(book, lab)
    at: datetime | None = None
    if when is not None:
        try:
            at = datetime.fromisoformat(when)
        except ValueError:
            raise RosterError(f"{when!r} is no date; wanted is one such as 2026-12-10T23:59+01:00") from None
        if at.tzinfo is None:
            raise RosterError(f"{when!r} has no time zone; wanted is a date such as {when}+00:00")
        at = at.astimezone(UTC)
    with book.gradebook() as opened:
        opened.find_assignment(lab).duedate = None if at is None else at.replace(tzinfo=None)
        opened.db.commit()
    return at
