"""Says in a sentence why the gradebook's database cannot be used: locked, damaged, or none at all."""

from __future__ import annotations

from pathlib import Path

__all__ = ["GradebookError", "refuse_unusable", "unusable"]

FILE = "sqlite:///"
"""How the address of a database in a file begins."""

MAGIC = b"SQLite format 3\0"
"""How each database of SQLite begins."""

_REASONS = (
    ("locked", "is locked by another program (Formgrader, nbgrader, a second course); close that, then try again"),
    ("not a database", "is no database, or is cut off; {mend}"),
    ("malformed", "is damaged; {mend}"),
    ("unable to open", "cannot be opened; see that its folder is there and that you may write in it"),
    ("readonly", "cannot be written; see who may write it and its folder"),
    ("full", "cannot grow: the disk is full; make room, then try again"),
    ("no such", "is of another version of nbgrader; make a copy of it, then run: nbgrader db upgrade"),
)
_MEND = "put a copy of it in its place, or move it away and mark the labs again"


class GradebookError(RuntimeError):
    """The gradebook cannot be used, or cannot take a mark; the message says why and what to do."""


def refuse_unusable(url: str) -> None:
    """Raise `GradebookError` for a file that is no database: SQLite would take an empty or a broken one for its own."""
    if not url.startswith(FILE):
        return
    path = Path(url.removeprefix(FILE))
    if path.is_dir():
        raise GradebookError(f"the gradebook {path} is a folder, but a database was wanted; move it away")
    try:
        with path.open("rb") as file:
            head = file.read(len(MAGIC))
    except FileNotFoundError:
        return
    except OSError as error:
        raise GradebookError(f"the gradebook {path} cannot be opened: {error.strerror}; see who may read it") from None
    if head and head != MAGIC:
        raise unusable(url, "file is not a database")


def unusable(url: str, why: str) -> GradebookError:
    """What the database's error ``why`` comes to, for the one who has to do something about it."""
    name = url.removeprefix(FILE)
    for word, reason in _REASONS:
        if word in why:
            return GradebookError(f"the gradebook {name} {reason.format(mend=_MEND)}")
    return GradebookError(f"the gradebook {name} cannot be used: {' '.join(why.split())[:300]}")
