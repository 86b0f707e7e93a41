"""Keeps what each check said last, and each prediction, for the student to see: one small file a piece.

A kernel remembers its own. Files are written only where the environment variable `XINFER_LAB_PROGRESS` names a folder.
The server that `make lab` starts sets it for its kernels; marking never does. They are notes, not marks: marking asks
again.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from xinfer_lab.grading.catalog import pieces_of

__all__ = [
    "VARIABLE", "Standing", "note_guess", "note_outcome", "read_guess", "read_outcomes", "standing_after",
]  # fmt: skip

VARIABLE = "XINFER_LAB_PROGRESS"
_WORDS = {True: "passed", False: "not yet"}
_NAME = re.compile(r"[a-z0-9]+\.[a-z0-9_]+")
_GUESSES = "guesses"

_outcomes: dict[str, bool] = {}
_guesses: dict[str, object] = {}


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a lab is: points whose checks passed, points in all, and the first check that did not pass, if any."""

    passed: int
    points: int
    next: str | None

    def __str__(self) -> str:
        then = f"Next: {self.next}." if self.next else "Every check of this lab has passed."
        return f"{self.passed} of {self.points} points. {then}"


def note_outcome(piece: str, passed: bool) -> None:
    """Keep what the check of ``piece`` ("lab1.layer_bytes") said, in place of what it said before.

    Writes nothing without the variable, and nothing where the folder cannot be written: a check is not to fail for
    that.
    """
    _outcomes[piece] = passed
    _write(piece, _WORDS[passed])


def note_guess(piece: str, guess: object) -> None:
    """Keep the prediction that was made for ``piece``, in the same way."""
    _guesses[piece] = guess
    _write(piece, json.dumps(guess, default=str), _GUESSES)


def _write(piece: str, text: str, below: str = "") -> None:
    folder = os.environ.get(VARIABLE)
    if not folder or not _NAME.fullmatch(piece):
        return
    # Written apart and then moved, so that a reader never sees half a word, whichever kernels write at once.
    made = Path(folder, below) / f".{piece}-{os.getpid()}"
    try:
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(text, encoding="ascii")
        os.replace(made, made.with_name(piece))
    except OSError:
        return


def read_guess(piece: str) -> object:
    """The prediction for ``piece``: of this kernel, else of an earlier one; None where none was made."""
    if piece in _guesses:
        return _guesses[piece]
    try:
        return json.loads(Path(os.environ[VARIABLE], _GUESSES, piece).read_text(encoding="ascii"))
    except (KeyError, OSError, ValueError):
        return None


def standing_after(piece: str) -> Standing:
    """How far the lab of ``piece`` is, by what this kernel and earlier ones noted."""
    folder = os.environ.get(VARIABLE)
    outcomes = (read_outcomes(Path(folder)) if folder else {}) | _outcomes
    pieces = pieces_of(piece.partition(".")[0])
    names = [one.name for one in pieces]
    # From here on first: what was passed over above is next when nothing below is left.
    turn = names.index(piece) if piece in names else 0
    missing = (name for name in names[turn:] + names[:turn] if not outcomes.get(name))
    return Standing(
        sum(one.points for one in pieces if outcomes.get(one.name)),
        sum(one.points for one in pieces),
        next(missing, None),
    )


def read_outcomes(folder: Path) -> dict[str, bool]:
    """Whether each piece that was checked passed the last time; empty where nothing was kept."""
    outcomes = {}
    try:
        files = sorted(folder.iterdir())
    except OSError:
        return {}
    for file in files:
        if _NAME.fullmatch(file.name):
            try:
                outcomes[file.name] = file.read_text(encoding="ascii") == _WORDS[True]
            except (OSError, UnicodeDecodeError):
                continue
    return outcomes
