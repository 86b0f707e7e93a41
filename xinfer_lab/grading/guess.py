"""A prediction next to the truth, where a lab comes to it: what was guessed is kept until then."""

from __future__ import annotations

import sys

from xinfer_lab.grading.progress import read_guess
from xinfer_lab.views.guess import guess_of_a_letter, guess_of_a_number
from xinfer_lab.views.picture import Picture

__all__ = ["beside_guess"]

_LETTERS = "ABCD"


def beside_guess(piece: str, truth: str | float, up_to: float | None = None, *, unit: str = "") -> None:
    """Show ``truth`` (a letter, a number, or the range from it ``up_to`` another) beside the guess that the check of
    ``piece`` noted: as a picture in a notebook, elsewhere as its words."""
    guess = read_guess(piece)
    if isinstance(truth, str):
        letters = sorted({*_LETTERS, truth})
        typed = guess.strip().upper() if isinstance(guess, str) else None
        shown = guess_of_a_letter(typed if typed in letters else None, truth, letters)
    else:
        number = None
        if isinstance(guess, (int, float)) and not isinstance(guess, bool) and 0 <= guess < float("inf"):
            number = float(guess)
        shown = guess_of_a_number(number, truth, truth if up_to is None else up_to, unit=unit)
    _display(shown)


def _display(picture: Picture) -> None:
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        ipython.display.display(picture)
    else:
        print(picture.alt)
