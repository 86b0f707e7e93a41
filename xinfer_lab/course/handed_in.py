"""What a student handed in: files as they lie there, not parsed, and what tells one version of them from another.

Nothing is written here: submitted/ belongs to the instructor who collects.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from xinfer_lab.course.notebook import LARGEST_FILE
from xinfer_lab.course.plain_files import LinkRefused, read_plain

__all__ = ["File", "HandedIn", "collect", "signature", "time_of"]

MOST_FILES = 20
"""Notebooks that are looked into."""

MOST_BYTES = 2 * LARGEST_FILE
"""Bytes that are read of one submission."""

TIMESTAMP = "timestamp.txt"
"""Where nbgrader's exchange and other collectors write when something was handed in."""

PASSED_OVER = (".ipynb_checkpoints", "__MACOSX")


@dataclass(frozen=True, slots=True)
class File:
    """A notebook's file. ``name`` is its path in the submission, ``modified`` in seconds since the epoch."""

    name: str
    content: bytes
    modified: float


@dataclass(frozen=True, slots=True)
class HandedIn:
    """The notebooks of one submission, whatever their names.

    ``unread`` says which files could not be read, ``others`` names the files that are no notebooks, and ``notes`` tells
    the rest. ``version`` changes with the files and with the time of handing in; ``signature`` changes also when a file
    is written again with the same content.
    """

    files: tuple[File, ...]
    unread: tuple[str, ...]
    others: tuple[str, ...]
    notes: tuple[str, ...]
    version: str
    signature: str


def collect(folder: Path) -> HandedIn:
    """Read what lies in ``folder``, one student's submission of one lab."""
    signed = signature(folder)
    found, others = [], []
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        if ".ipynb" in path.name.lower():
            found.append((name, path))
        elif name != TIMESTAMP:
            others.append(name)
    files: list[File] = []
    unread: list[str] = []
    notes: list[str] = []
    version, left = sha256(), MOST_BYTES
    for name, path in found[:MOST_FILES]:
        content, trouble = _read(path, name, folder, left)
        left -= len(content)
        version.update(f"{name}\n{len(content)}\n{trouble}\n".encode())
        version.update(content)
        if trouble:
            unread.append(trouble)
        else:
            files.append(File(name, content, path.stat().st_mtime))
    if len(found) > MOST_FILES:
        notes.append(f"{len(found)} notebooks were handed in; only the first {MOST_FILES} were looked at.")
    stamp = folder / TIMESTAMP
    version.update(b"timestamp\n" + (_read(stamp, TIMESTAMP, folder, LARGEST_FILE)[0] if stamp.exists() else b""))
    _, trouble = time_of(folder)
    notes += [trouble] if trouble else []
    return HandedIn(tuple(files), tuple(unread), tuple(others), tuple(notes), version.hexdigest(), signed)


def signature(folder: Path) -> str:
    """Names, sizes and times of the files in ``folder``, without reading them."""
    found = sha256()
    for path in _files(folder):
        try:
            about = path.stat()
            line = f"{path.relative_to(folder).as_posix()}\n{about.st_size}\n{about.st_mtime_ns}\n"
        except OSError as error:
            line = f"{path.name}\n{error.errno}\n"
        found.update(line.encode(errors="replace"))
    return found.hexdigest()


def time_of(folder: Path) -> tuple[datetime | None, str]:
    """When the submission in ``folder`` was handed in, in UTC, by its timestamp.txt, or None; and what is wrong with
    that file, or ''.
    """
    path = folder / TIMESTAMP
    if not path.exists():
        return None, ""
    content, trouble = _read(path, TIMESTAMP, folder, 1000)
    words = f"{TIMESTAMP} cannot be read as a date, so it is not known when this was handed in"
    if trouble:
        return None, f"{words}: {trouble}"
    if not content.strip():
        return None, ""
    from nbgrader.utils import parse_utc

    try:
        text = content.decode("utf-8-sig").strip()
        found: datetime | None = parse_utc(text)
    except UnicodeDecodeError:
        return None, f"{words}: it is not text in UTF-8."
    except (ValueError, OverflowError, TypeError, AttributeError):
        return None, f"{words}: it says {text[:60]!r}; wanted is a date such as 2026-11-30 20:00:00 UTC."
    return found, ""


def _files(folder: Path) -> Iterator[Path]:
    """The files in ``folder`` and the folders in it, in order; of those of editors and archives, none."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in PASSED_OVER)
        for name in sorted(names):
            if not name.startswith("._"):
                yield Path(place, name)


def _read(path: Path, name: str, folder: Path, most: int) -> tuple[bytes, str]:
    try:
        # The file, every folder down to it, the lab's folder and the student's: none of them may be a link.
        depth = len(path.relative_to(folder).parts) + 2
        content, size = read_plain(path, min(most, LARGEST_FILE), depth=depth)
    except LinkRefused as error:
        return b"", f"{name} was not read: {error.strerror}."
    except OSError as error:
        return b"", f"{name} cannot be opened: {error.strerror or error}."
    if size > min(most, LARGEST_FILE):
        return b"", f"{name} has {size:,} bytes; at most {min(most, LARGEST_FILE):,} are read. Clear its outputs."
    return content, ""
