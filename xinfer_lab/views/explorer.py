"""Puts knobs over a picture: labelled controls that work by keyboard.

Native HTML controls rather than ipywidgets' sliders: they have labels and focus. A notebook stores the first picture as
HTML, and no widget: explorer.js puts the controls into that picture where a kernel answers. So after a restart, in an
exported page and on GitHub the picture stays, with a sentence that says how to turn the knobs.
"""

from __future__ import annotations

import html
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import anywidget
import traitlets

__all__ = ["Explorer", "HasHtml", "Knob", "Shown", "explore"]


class HasHtml(Protocol):
    """What notebooks show as HTML: a `Picture`, a report, a chart."""

    def _repr_html_(self) -> str: ...


Shown = HasHtml | str | Sequence["HasHtml | str"]
"""What a function shows: words (a paragraph of their own each), pictures, or several of them in order."""


@dataclass(frozen=True, slots=True)
class Knob:
    """A control with its ``label``. ``options`` are the values to choose from, in order, and ``start`` the first one
    shown (its first option if None). ``names`` say the options where ``str`` would not.

    Numbers make a slider, anything else a list to choose from. A slider that ``plays`` has a button that goes through
    its options; ``stored`` is the option whose picture a notebook keeps (``start`` if None). Raises ValueError without
    options, for a start that is not one of them, too many or too few names, or a list that plays.
    """

    label: str
    options: Sequence[Any]
    start: Any = None
    names: Sequence[str] | None = None
    plays: bool = False
    stored: Any = None

    def __post_init__(self) -> None:
        if not self.options:
            raise ValueError(f"the knob {self.label!r} has no options")
        for verb, value in (("starts at", self.start), ("stores", self.stored)):
            if value is not None and value not in list(self.options):
                raise ValueError(f"the knob {self.label!r} {verb} {value!r}, which is none of its options")
        if self.plays and self.kind != "slider":
            raise ValueError(f"the knob {self.label!r} is a list; only a slider plays")
        if self.names is not None and len(self.names) != len(self.options):
            raise ValueError(f"the knob {self.label!r} has {len(self.options)} options and {len(self.names)} names")

    def spoken(self) -> list[str]:
        """The options in words."""
        return list(self.names) if self.names is not None else [_spoken(option) for option in self.options]

    @property
    def place(self) -> int:
        """The number of the option that is shown first."""
        return 0 if self.start is None else list(self.options).index(self.start)

    @property
    def stored_place(self) -> int:
        """The number of the option whose picture is stored."""
        return self.place if self.stored is None else list(self.options).index(self.stored)

    @property
    def kind(self) -> str:
        """ "slider" or "list"."""
        return "slider" if all(isinstance(option, int | float) for option in self.options) else "list"


def _spoken(option: object) -> str:
    return f"{option:,}" if isinstance(option, int) else f"{option:g}" if isinstance(option, float) else str(option)


class Explorer(anywidget.AnyWidget):
    """The widget behind `explore`. ``controls`` are its knobs, ``asked`` what the page wants to see next, ``answer``
    what it sees; each has a number, so that the page knows which question was answered. ``place`` is the class of the
    HTML element that the controls go into."""

    _esm = Path(__file__).with_name("explorer.js")
    _css = Path(__file__).with_name("explorer.css")
    controls: traitlets.List[dict[str, Any]] = traitlets.List().tag(sync=True)
    chosen: traitlets.List[int] = traitlets.List().tag(sync=True)
    asked = traitlets.Dict().tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)
    place = traitlets.Unicode().tag(sync=True)

    def __init__(self, function: Callable[..., Shown], knobs: dict[str, Knob]) -> None:
        self._function, self._knobs = function, knobs
        controls = [
            {"label": knob.label, "kind": knob.kind, "options": knob.spoken(), "plays": knob.plays}
            for knob in knobs.values()
        ]
        chosen = [knob.place for knob in knobs.values()]
        answer = {"number": 0, "html": self._html(chosen)}
        stored = [knob.stored_place for knob in knobs.values()]
        self._stored = answer["html"] if stored == chosen else self._html(stored)
        super().__init__(controls=controls, chosen=chosen, answer=answer, place=f"xinfer-explorer-{uuid4().hex}")
        self.observe(self._ask, "asked")

    def _html(self, chosen: Sequence[int]) -> str:
        values = {name: knob.options[place] for (name, knob), place in zip(self._knobs.items(), chosen, strict=True)}
        try:
            return shown_as_html(self._function(**values))
        except Exception as error:  # a student's own functions may be called here: say what they raise, and go on
            return shown_as_html(f"{type(error).__name__}: {error}")

    def _ask(self, change: dict[str, Any]) -> None:
        asked = change["new"]
        self.chosen = asked["chosen"]
        self.answer = {"number": asked["number"], "html": self._html(asked["chosen"])}

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The stored picture, which explorer.js brings to life; with the widget itself where outputs cannot see one
        another."""
        names = ", ".join(control["label"] for control in self.controls)
        note = f"<p><small>Run this cell to turn its knobs: {html.escape(names)}.</small></p>"
        stored = {"text/html": f'<div class="xinfer-explorer {self.place}">{note}{self._stored}</div>'}
        if not _outputs_apart():
            return {**stored, "text/plain": f"knobs: {names}"}
        found = super()._repr_mimebundle_(**kwargs)
        data, *rest = found if isinstance(found, tuple) else (found,)
        data = {**(data or {}), **stored}
        return (data, *rest) if rest else data


def _outputs_apart() -> bool:
    """Whether each output is a page of its own, where only the widgets in it are alive: in Colab and in VS Code."""
    return "google.colab" in sys.modules or ("VSCODE_PID" in os.environ and "JPY_SESSION_NAME" not in os.environ)


def shown_as_html(shown: Shown) -> str:
    """What a function showed, as HTML."""
    parts: Sequence[Any] = shown if isinstance(shown, list | tuple) else [shown]
    return "".join(
        f"<p>{html.escape(part).replace(chr(10), '<br>')}</p>" if isinstance(part, str) else part._repr_html_()
        for part in parts
    )


def explore(function: Callable[..., Shown], **knobs: Knob) -> Explorer:
    """Show ``function(name=value, ...)`` under a knob for each of its arguments, and again whenever one is turned.

    Use it as the last line of a cell. The function returns what to show; an exception is shown in its place.
    """
    return Explorer(function, knobs)
