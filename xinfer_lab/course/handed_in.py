"""What students handed in: files as they lie there, not opened, and what tells one version of them from another."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from xinfer_lab.course.notebook import LARGEST_FILE

__all__ = ["HandedIn", "collect"]

MOST_FILES = 20
"""Notebooks that are looked into where none has the lab's name."""


@dataclass(frozen=True, slots=True)
class HandedIn:
    """Notebooks by file name, with their content: the lab's own where it is there, else all there are.

    ``notes`` say which could not be read. ``version`` is another for other files or another time of handing in.
    """

    files: tuple[tuple[str, bytes], ...]
    notes: tuple[str, ...]
    version: str


def collect(folder: Path, name: str) -> HandedIn:
    """What lies in ``folder`` for the notebook ``name`` (with its suffix)."""
    found = [folder / name]
    if not found[0].is_file():
        found = sorted(path for path in folder.glob("*.ipynb") if path.is_file())
    files, notes = [], []
    version = sha256()
    for path in found[:MOST_FILES]:
        content, trouble = _read(path)
        version.update(f"{path.name}\n{len(content)}\n{trouble}\n".encode())
        version.update(content)
        if trouble:
            notes.append(trouble)
        else:
            files.append((path.name, content))
    if len(found) > MOST_FILES:
        notes.append(f"{len(found)} notebooks were handed in; only the first {MOST_FILES} were looked at.")
    time, _ = _read(folder / "timestamp.txt")
    version.update(b"timestamp\n" + time)
    return HandedIn(tuple(files), tuple(notes), version.hexdigest())


def _read(path: Path) -> tuple[bytes, str]:
    try:
        if not path.is_file():
            return b"", f"{path.name} is missing."
        size = path.stat().st_size
        if size > LARGEST_FILE:
            return b"", f"{path.name} has {size:,} bytes; at most {LARGEST_FILE:,} are read. Clear its outputs."
        return path.read_bytes(), ""
    except OSError as error:
        return b"", f"{path.name} cannot be opened: {error.strerror or error}."
