"""The parts of an engine in its folder: which are the student's, and why one is not used."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xinfer_lab.grading.keep import digest_of, read_passed
from xinfer_lab.grading.part import Part, parts_of
from xinfer_lab.grading.rooms import LABS

__all__ = ["Found", "find_parts", "kept_parts"]


@dataclass(frozen=True, slots=True)
class Found:
    """One part of ``lab``. ``code`` is the student's function or class, None where the course's is used instead.

    ``status`` is "yours", "changed" (yours, with another text than the one that passed), "open" (a check is still to
    pass), "broken" (it cannot be imported) or "missing". ``note`` is a sentence for the last three, and for "changed".
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


def find_parts(folder: Path) -> dict[str, Found]:
    """Every part that the labs build, by name, in the labs' order, as ``folder`` has it. Imports the student's code.

    A missing folder is one without parts. A part that was changed since its check passed is used, and told.
    """
    passed = read_passed(folder)
    return {part.name: _find(part, lab, folder, passed.get(part.name, {})) for lab in LABS for part in parts_of(lab)}


def kept_parts(folder: Path) -> dict[str, Found]:
    """As `find_parts`, without running any of the student's code: what the files and the record of checks say."""
    passed = read_passed(folder)
    return {part.name: _kept(part, lab, folder, passed.get(part.name, {})) for lab in LABS for part in parts_of(lab)}


def _find(part: Part, lab: str, folder: Path, passed: dict[str, str]) -> Found:
    found = _kept(part, lab, folder, passed)
    if found.status not in ("yours", "changed"):
        return found
    path = folder / f"{part.name}.py"
    try:
        code = getattr(_imported(path), part.code, None)
    except (Exception, SystemExit) as error:
        return Found(part, lab, "broken", note=f"{path} cannot be imported: {type(error).__name__}: {error}.")
    if not callable(code):
        return Found(part, lab, "broken", note=f"{path} defines no {part.code}.")
    return replace(found, code=code)


def _kept(part: Part, lab: str, folder: Path, passed: dict[str, str]) -> Found:
    """The part as its file and the record have it; its code is not run."""
    path = folder / f"{part.name}.py"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Found(part, lab, "missing", note=f"{path.name} is not there; it is kept when its check in {lab} passes.")
    except (OSError, UnicodeDecodeError) as error:
        return Found(part, lab, "broken", note=f"{path} cannot be read: {error}.")
    still = [check for check in part.checks if check not in passed]
    if still:
        return Found(part, lab, "open", note=f"{path.name} has not passed {' and '.join(still)} yet.")
    if any(passed[check] != digest_of(text) for check in part.checks):
        note = f"{path.name} was changed after its check passed: run the check in {lab} again to be sure of it."
        return Found(part, lab, "changed", note=note)
    return Found(part, lab, "yours")


def _imported(path: Path) -> Any:
    # A name of its own, so that a part called like a library's module hides none.
    name = f"my_engine_part_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
