"""Keep what passed: a student's parts as modules in a folder ``my_engine``, which later labs and the command line use.

Checks in a notebook keep parts; marking never does. Each part is one file with what its author wrote. ``parts.json``
beside the files says which checks each text has passed, by its digest: a text that was changed later is known.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from xinfer_lab.grading.part import Part, parts_of
from xinfer_lab.grading.source_of import NotKept, source_of

__all__ = ["FOLDER", "VARIABLE", "digest_of", "engine_folder", "keep", "read_passed"]

FOLDER = "my_engine"
VARIABLE = "XINFER_LAB_ENGINE"
"""The environment variable that names another folder; empty, nothing is kept."""
_RECORD = "parts.json"


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
    folder = engine_folder()
    part = next((part for part in parts_of(check.partition(".")[0]) if check in part.checks), None)
    if folder is None or part is None:
        return ""
    try:
        text = _text(part, answer)
        _write(folder / f"{part.name}.py", text)
        passed, digest = read_passed(folder), digest_of(text)
        same = {name: was for name, was in passed.get(part.name, {}).items() if was == digest}
        passed[part.name] = {**same, check: digest}
        _write(folder / _RECORD, json.dumps(passed, indent=2, sort_keys=True) + "\n")
    except NotKept as error:
        return f"Not kept for your engine: {error}."
    except OSError as error:
        return f"Not kept for your engine: {error.strerror or error} ({folder})."
    open_checks = [name for name in part.checks if name not in passed[part.name]]
    still = f"; it is yours once {' and '.join(open_checks)} pass too" if open_checks else ""
    return f"Kept as {FOLDER}/{part.name}.py{still}."


def _text(part: Part, answer: object) -> str:
    body = source_of(answer)
    name = getattr(answer, "__name__", part.code)
    alias = "" if name == part.code else f"\n\n{part.code} = {name}\n"
    return f'"""Your part: {part.does}. Kept when its check passed."""\n\n{body}{alias}'


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Written apart and then moved: a reader never sees half a file, whichever kernels write at once.
    made = path.with_name(f".{path.name}-{os.getpid()}")
    made.write_text(text, encoding="utf-8")
    os.replace(made, path)


def digest_of(text: str) -> str:
    """The digest by which a part's text is known, whatever its line ends."""
    return sha256(text.replace("\r\n", "\n").encode()).hexdigest()


def read_passed(folder: Path) -> dict[str, dict[str, str]]:
    """By part, the digest of the text with which each check was passed; empty where nothing (readable) was kept."""
    try:
        read: Any = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(read, Mapping):
        return {}
    return {
        str(part): {str(check): str(digest) for check, digest in checks.items()}
        for part, checks in read.items()
        if isinstance(checks, Mapping)
    }
