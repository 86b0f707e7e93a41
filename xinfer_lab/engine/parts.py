"""The parts of an engine in its folder: which are the student's, and why one is not used."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xinfer_lab.engine.loading import PartError, load_part
from xinfer_lab.grading.keep import Passed, read_passed
from xinfer_lab.grading.part import Part, parts_of
from xinfer_lab.grading.rooms import LABS

__all__ = ["Choice", "Found", "find_parts", "kept_parts"]


@dataclass(frozen=True, slots=True)
class Found:
    """One part of ``lab``. ``code`` is the student's function or class, None where the course's is used instead.

    ``status`` is "yours", "changed" (yours, with another text than the one that passed), "open" (a check is still to
    pass), "broken" (it cannot be used) or "missing". ``note`` is a sentence for the last three, and for "changed".
    """

    part: Part
    lab: str
    status: str
    code: Any = None
    note: str = ""

    @property
    def is_used(self) -> bool:
        """Whether the engine uses the student's part."""
        return self.status in ("yours", "changed")


class Choice:
    """Takes the student's part where there is one, else the course's, and notes which in ``used``."""

    def __init__(self, parts: Mapping[str, Found]) -> None:
        self.parts = parts
        self.used: dict[str, bool] = {}

    def has(self, name: str) -> bool:
        """Whether the part ``name`` is the student's."""
        return self.parts[name].is_used

    def take(self, name: str, lent: Callable[[], Any]) -> Any:
        """The student's part ``name``, or what ``lent`` returns."""
        self.used[name] = self.has(name)
        return self.parts[name].code if self.used[name] else lent()

    @property
    def lent(self) -> list[str]:
        """The names of the parts that were taken and are the course's."""
        return [name for name, own in self.used.items() if not own]

    def told(self) -> str:
        """Whose the parts are that were taken, as a sentence; and what is to be known of those of the student's."""
        notes = "".join(f" {self.parts[name].note}" for name in self.used if self._says(name))
        if not self.lent:
            return f"All {len(self.used)} parts that ran are yours.{notes}"
        own = len(self.used) - len(self.lent)
        lent = ", ".join(self.lent)
        return f"{own} of the {len(self.used)} parts that ran are yours; lent by the course: {lent}.{notes}"

    def _says(self, name: str) -> bool:
        return self.parts[name].status in ("changed", "broken")


def find_parts(folder: Path | None) -> dict[str, Found]:
    """Every part that the labs build, by name, in the labs' order, as ``folder`` has it. Imports the student's code.

    None, or a missing folder, is one without parts. A part that was changed since its check passed is used, and told.
    """
    folder = folder or Path(os.devnull, "none")
    return {found.part.name: _loaded(found, text, folder) for found, text in _look(folder)}


def kept_parts(folder: Path) -> dict[str, Found]:
    """As `find_parts`, without running any of the student's code: what the files and the record of checks say."""
    return {found.part.name: found for found, _ in _look(folder)}


def _look(folder: Path) -> Iterable[tuple[Found, str]]:
    passed = read_passed(folder)
    for lab in LABS:
        for part in parts_of(lab):
            yield _kept(part, lab, folder / f"{part.name}.py", passed.get(part.name, Passed({})))


def _loaded(found: Found, text: str, folder: Path) -> Found:
    if not found.is_used:
        return found
    try:
        return replace(found, code=load_part(found.part, folder / f"{found.part.name}.py", text))
    except PartError as error:
        return replace(found, status="broken", note=str(error))


def _kept(part: Part, lab: str, path: Path, passed: Passed) -> tuple[Found, str]:
    """The part as its file and the record have it, and the file's text; it is not run."""
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        note = f"{path.name} is not there; it is kept when its check in {_name(lab)} passes."
        return Found(part, lab, "missing", note=note), ""
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        return Found(part, lab, "broken", note=f"{path.name} cannot be read: {said}."), ""
    status = passed.status(part, text)
    if status == "changed":
        note = f"{path.name} was changed after its check passed: run the check in {_name(lab)} again to be sure of it."
        return Found(part, lab, status, note=note), text
    if status == "open":
        still = " and ".join(passed.lacks(part, text))
        return Found(part, lab, status, note=f"{path.name} has not passed {still} yet."), text
    return Found(part, lab, status), text


def _name(lab: str) -> str:
    return f"Lab {lab.removeprefix('lab')}"
