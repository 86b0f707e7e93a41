"""Draws a prediction next to the answer: two bars for numbers, the letters side by side for a choice."""

from __future__ import annotations

from collections.abc import Sequence

from xinfer_lab.views.picture import Picture
from xinfer_lab.views.svg import document, element, text
from xinfer_lab.views.theme import ThemeName, definitions, stylesheet
from xinfer_lab.views.value_bars import ValueBar, value_bars

__all__ = ["guess_of_a_letter", "guess_of_a_number"]

_COLUMNS = ("", "value")
_BOX, _HIGH = 92.0, 92.0


def guess_of_a_number(guess: float | None, low: float, high: float, *, unit: str = "") -> Picture:
    """``guess`` (None: none was made) above the answer, a number or the range ``low`` to ``high``."""

    def show(value: float) -> str:
        number = f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
        return f"{number} {unit}".strip()

    bars = [] if guess is None else [ValueBar("your guess", guess, "your guess")]
    ends = {"from": low, "to": high} if high > low else {"the answer": low}
    bars += [ValueBar(name, value, "the answer") for name, value in ends.items()]
    title = f"The answer: {show(low)}" + (f" to {show(high)}" if high > low else "")
    if guess is not None:
        title += f"; you guessed {show(guess)}"
    return value_bars(bars, title=title, show=show, width=640)


def guess_of_a_letter(guess: str | None, truth: str, choices: Sequence[str], theme: ThemeName = "auto") -> Picture:
    """``choices`` side by side: ``truth`` is filled, ``guess`` (None: none was made) has a frame, both have a word."""
    title = f"The answer: {truth}"
    if guess is not None:
        title += "; you guessed it" if guess == truth else f"; you guessed {guess}"
    svg = [text(12, 24, title, font_size=15.0, class_="strong")]
    for place, letter in enumerate(choices):
        x = 12 + place * (_BOX + 8)
        svg.append(
            element("rect", class_="s2" if letter == truth else "outline", x=x, y=36, width=_BOX, height=26, rx=4.0)
        )
        svg.append(text(x + _BOX / 2, 54, letter, font_size=14.0, text_anchor="middle", class_="strong halo"))
        words = [word for word, there in (("the answer", letter == truth), ("your guess", letter == guess)) if there]
        svg.append(text(x + _BOX / 2, 78, ", ".join(words), font_size=12.5, text_anchor="middle"))
    width = 24 + len(choices) * (_BOX + 8)
    rows = tuple((name, value) for name, value in (("your guess", guess), ("the answer", truth)) if value is not None)
    drawing = document(
        "\n".join([element("rect", class_="paper", width=width, height=_HIGH, rx=6), *svg]),
        width=width, height=_HIGH, title=title, description=f"{title}.", style=stylesheet(theme, [2]),
        definitions=definitions([2]),
    )  # fmt: skip
    return Picture(title, drawing, f"{title}.", _COLUMNS, rows)
