"""Keep what passed: a student's parts as modules in a folder ``my_engine``, which later labs and the command line use.

Checks in a notebook keep parts; marking never does. Each part is one file with what its author wrote. ``parts.json``
beside the files says which texts have passed which check, by their digests: a text that was changed later is known, and
one that passed earlier is known again. A file holds the newest text that passed all of its part's checks; until there
is one, the newest that passed any.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from xinfer_lab.grading.part import Part, part_of
from xinfer_lab.grading.source_of import NotKept, source_of

__all__ = ["FOLDER", "VARIABLE", "Passed", "digest_of", "engine_folder", "keep", "read_passed", "stays"]

FOLDER = "my_engine"
VARIABLE = "XINFER_LAB_ENGINE"
"""The environment variable that names another folder; empty, nothing is kept."""
_RECORD = "parts.json"
_TEXTS = 20
"""Digests that are kept of each check, the newest ones."""
_PATIENCE = 10.0
"""Seconds to wait for another kernel that keeps a part; it takes milliseconds."""


@dataclass(frozen=True, slots=True)
class Passed:
    """What the record says of one part: by check, the digests of the texts that passed it, the oldest first."""

    checks: Mapping[str, tuple[str, ...]]

    def lacks(self, part: Part, text: str) -> list[str]:
        """The checks of ``part`` that ``text`` has not passed."""
        digest = digest_of(text)
        return [check for check in part.checks if digest not in self.checks.get(check, ())]

    def status(self, part: Part, text: str) -> str:
        """What ``text`` is: "yours" (it passed all checks of ``part``), "changed" (it passed none, another text all of
        them), or "open"."""
        if not self.lacks(part, text):
            return "yours"
        whole = set.intersection(*(set(self.checks.get(check, ())) for check in part.checks))
        return "changed" if whole and not self.knows(text) else "open"

    def knows(self, text: str) -> bool:
        """Whether ``text`` passed any check."""
        return any(digest_of(text) in digests for digests in self.checks.values())

    def noting(self, check: str, text: str) -> Passed:
        """The same, and that ``text`` passed ``check``."""
        digest = digest_of(text)
        others = [one for one in self.checks.get(check, ()) if one != digest]
        return Passed({**self.checks, check: (*others, digest)[-_TEXTS:]})


def engine_folder() -> Path | None:
    """Where this process keeps parts: what the variable names, else `FOLDER` beside the folder of labs where this is
    a notebook's kernel, else None."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named) if named else None
    if "ipykernel.zmqshell" not in sys.modules:
        return None
    here = Path.cwd()
    if re.match(r"lab\d", here.name):
        here = here.parent.parent if here.parent.name == "labs" else here.parent
    return here / FOLDER


def keep(check: str, answer: object) -> str:
    """Keep ``answer``, which just passed ``check``; a sentence for the student, '' where there is nothing to say.

    Never raises: a check is not to fail because a folder cannot be written.
    """
    folder, part = engine_folder(), part_of(check)
    if folder is None or part is None:
        return ""
    try:
        text = _text(part, answer)
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock", timeout=_PATIENCE):
            return _keep(folder, part, check, text)
    except NotKept as error:
        return f"Not kept for your engine: {error}."
    except Timeout:
        return f"Not kept for your engine: another notebook holds {folder / '.lock'}. Run the check again."
    except OSError as error:
        return f"Not kept for your engine: {error.strerror or error} ({folder})."


def _keep(folder: Path, part: Part, check: str, text: str) -> str:
    record, path = read_passed(folder), folder / f"{part.name}.py"
    before, there = record.get(part.name, Passed({})), _read(path)
    now = before.noting(check, text)
    lacks, name = now.lacks(part, text), f"{FOLDER}/{part.name}.py"
    still = f"{' and '.join(lacks)} pass{'es' if len(lacks) == 1 else ''} too"
    if lacks and there is not None and before.status(part, there) != "open":
        said = f"{name} stays the one that passed before, until {still}"
    else:
        said = f"Kept as {name}" + (f"; it is yours once {still}" if lacks else "")
        if there is not None and not now.knows(there):
            _write(path.with_suffix(".py.before"), there)
            said += f". What was changed in that file by hand is in {path.name}.before"
        _write(path, text)
    record[part.name] = now
    data = {one: {check: list(digests) for check, digests in was.checks.items()} for one, was in record.items()}
    _write(folder / _RECORD, json.dumps(data, indent=2, sort_keys=True) + "\n")
    return f"{said}."


def stays(check: str) -> str:
    """What to say of the part that ``check`` just refused: that the text which passed earlier is still there; '' where
    none is."""
    folder, part = engine_folder(), part_of(check)
    if folder is None or part is None:
        return ""
    passed = read_passed(folder).get(part.name)
    try:
        text = _read(folder / f"{part.name}.py")
    except OSError:
        return ""
    if passed is None or text is None or passed.lacks(part, text):
        return ""
    return f"{FOLDER}/{part.name}.py stays as it was: your answer that passed earlier."


def _text(part: Part, answer: object) -> str:
    body = source_of(answer)
    name = getattr(answer, "__name__", part.code)
    alias = "" if name == part.code else f"\n\n{part.code} = {name}\n"
    return f'"""Your part: {part.does}. Kept when its check passed."""\n\n{body}{alias}'


def _read(path: Path) -> str | None:
    """The text of ``path``; None where there is none. What is no UTF-8 is some text that never passed."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def _write(path: Path, text: str) -> None:
    # Written apart and then moved: a reader never sees half a file, whichever kernels write at once.
    made = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        made.write_text(text, encoding="utf-8", newline="\n")
        os.replace(made, path)
    finally:
        made.unlink(missing_ok=True)


def digest_of(text: str) -> str:
    """The digest by which a part's text is known, whatever its line ends."""
    return sha256(text.replace("\r\n", "\n").encode(errors="replace")).hexdigest()


def read_passed(folder: Path) -> dict[str, Passed]:
    """What each part has passed, by its name; empty where nothing (readable) was kept."""
    try:
        read: Any = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(read, Mapping):
        return {}
    return {
        str(part): Passed(
            {str(check): tuple(map(str, texts)) for check, texts in checks.items() if isinstance(texts, list)}
        )
        for part, checks in read.items()
        if isinstance(checks, Mapping)
    }
