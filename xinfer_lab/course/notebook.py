"""Reads notebooks as they come: whatever can be read, with plain words on what cannot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xinfer_lab.course.plain_files import read_plain

__all__ = [
    "LARGEST_FILE",
    "Cell",
    "Notebook",
    "UnreadableNotebook",
    "load_notebook",
    "parse_notebook",
    "read_notebook",
]

LARGEST_FILE = 256 * 2**20
"""Bytes. Outputs may be large; they are dropped, and a larger file is not opened."""

LARGEST_SOURCE = 200_000
"""Characters of one cell; nobody types more."""

LARGEST_TEXT = 2_000_000
"""Characters of all cells: reading them as Python takes time, which is marking's own."""

MOST_CELLS = 2_000

KINDS = ("code", "markdown", "raw")


class UnreadableNotebook(ValueError):
    """A file that is no notebook; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell without its outputs. ``mark`` is nbgrader's metadata (empty where there is none), ``id`` the cell's id
    or None.

    ``attachments`` are pictures that were pasted into a text.
    """

    kind: str
    source: str
    id: str | None = None
    mark: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    attachments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def grade_id(self) -> str | None:
        """nbgrader's name of the cell, if it has one."""
        name = self.mark.get("grade_id")
        return name if isinstance(name, str) else None

    @property
    def text(self) -> str:
        """The source as it is compared: without blanks at the ends of lines and blank lines around it."""
        return "\n".join(line.rstrip() for line in self.source.splitlines()).strip("\n")


@dataclass(frozen=True, slots=True)
class Notebook:
    """The cells of a notebook; ``notes`` say what was passed over while reading."""

    cells: tuple[Cell, ...]
    notes: tuple[str, ...] = ()


def read_notebook(path: Path, *, depth: int = 0) -> Notebook:
    """The notebook in the file ``path``. None of the last ``depth`` parts of the path may be a link, as of one that was
    handed in.

    Raises `UnreadableNotebook` with a reason that a student understands.
    """
    try:
        raw, size = read_plain(path, LARGEST_FILE, depth=depth)
    except OSError as error:
        raise UnreadableNotebook(f"{path.name} cannot be opened: {error.strerror or error}") from None
    if size > LARGEST_FILE:
        raise UnreadableNotebook(
            f"{path.name} has {size:,} bytes; at most {LARGEST_FILE:,} are read. Clear its outputs."
        )
    return load_notebook(raw, path.name)


def load_notebook(raw: bytes, name: str) -> Notebook:
    """The notebook that the file ``name`` with the content ``raw`` holds. Raises `UnreadableNotebook`."""
    if not raw.strip():
        raise UnreadableNotebook(f"{name} is empty")
    try:
        data = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UnreadableNotebook(f"{name} is not text in UTF-8 (byte {error.start})") from None
    except (ValueError, RecursionError) as error:
        raise UnreadableNotebook(f"{name} is not valid JSON: {str(error)[:200]}") from None
    except MemoryError:
        raise UnreadableNotebook(f"{name} takes more memory than there is for it; clear its outputs") from None
    return parse_notebook(data, name)


def parse_notebook(data: object, name: str = "the notebook") -> Notebook:
    """The notebook that the JSON ``data`` describes, of format 3 or 4. Raises `UnreadableNotebook`."""
    if not isinstance(data, Mapping):
        raise UnreadableNotebook(f"{name} is JSON, but no notebook")
    listed = data.get("cells")
    if listed is None and isinstance(data.get("worksheets"), list):  # format 3
        listed = [
            cell for sheet in data["worksheets"] if isinstance(sheet, Mapping) for cell in sheet.get("cells") or ()
        ]
    if not isinstance(listed, list):
        raise UnreadableNotebook(f"{name} is JSON, but has no list of cells")
    cells, notes = [], []
    room = LARGEST_TEXT
    for number, item in enumerate(listed[:MOST_CELLS], 1):
        cell = _cell(item)
        if cell is None:
            notes.append(f"Cell number {number} cannot be read and was passed over.")
        elif len(cell.source) > min(LARGEST_SOURCE, room):
            notes.append(f"Cell number {number} has {len(cell.source):,} characters and was passed over.")
        else:
            cells.append(cell)
            room -= len(cell.source)
    if len(listed) > MOST_CELLS:
        notes.append(f"The notebook has {len(listed):,} cells; only the first {MOST_CELLS:,} were read.")
    return Notebook(tuple(cells), tuple(notes))


def _cell(item: object) -> Cell | None:
    if not isinstance(item, Mapping) or item.get("cell_type") not in (*KINDS, "heading"):
        return None
    source = item.get("source", item.get("input", ""))
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        return None
    kind = item["cell_type"] if item["cell_type"] in KINDS else "markdown"
    metadata = item.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    mark = metadata.get("nbgrader")
    # Colab keeps the id in the metadata.
    found = item.get("id", metadata.get("id"))
    # Unpaired surrogates cannot be written to a file again.
    source = source.encode("utf-8", "replace").decode("utf-8")
    pictures = item.get("attachments")
    return Cell(
        kind,
        source,
        found if isinstance(found, str) else None,
        mark if isinstance(mark, Mapping) else {},
        metadata,
        pictures if isinstance(pictures, Mapping) and kind != "code" else {},
    )
