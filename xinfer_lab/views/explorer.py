"""Puts knobs over a picture: labelled controls that work by keyboard.

Native HTML controls rather than ipywidgets' sliders: they have labels and focus, and their first picture is stored in
the notebook. So where there is no kernel or no JavaScript (a web page of a notebook, GitHub) that picture stays.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

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

    Numbers make a slider, anything else a list to choose from. Raises ValueError without options, for a start that is
    not one of them, or for too many or too few names.
    """

    label: str
    options: Sequence[Any]
    start: Any = None
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if not self.options:
            raise ValueError(f"the knob {self.label!r} has no options")
        if self.start is not None and self.start not in list(self.options):
            raise ValueError(f"the knob {self.label!r} starts at {self.start!r}, which is none of its options")
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
    def kind(self) -> str:
        """ "slider" or "list"."""
        return "slider" if all(isinstance(option, int | float) for option in self.options) else "list"


def _spoken(option: object) -> str:
    return f"{option:,}" if isinstance(option, int) else f"{option:g}" if isinstance(option, float) else str(option)


class Explorer(anywidget.AnyWidget):
    """The widget behind `explore`. ``controls`` are its knobs, ``asked`` what the page wants to see next, ``answer``
    what it sees; each has a number, so that the page knows which question was answered."""

    _esm = Path(__file__).with_name("explorer.js")
    _css = Path(__file__).with_name("explorer.css")
    controls: traitlets.List[dict[str, Any]] = traitlets.List().tag(sync=True)
    chosen: traitlets.List[int] = traitlets.List().tag(sync=True)
    asked = traitlets.Dict().tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)

    def __init__(self, function: Callable[..., Shown], knobs: dict[str, Knob]) -> None:
        self._function, self._knobs = function, knobs
        controls = [{"label": knob.label, "kind": knob.kind, "options": knob.spoken()} for knob in knobs.values()]
        chosen = [knob.place for knob in knobs.values()]
        super().__init__(controls=controls, chosen=chosen, answer={"number": 0, "html": self._html(chosen)})
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
        """The widget, and its first picture for where there is no widget."""
        found = super()._repr_mimebundle_(**kwargs)
        data, *rest = found if isinstance(found, tuple) else (found,)
        data = {**(data or {}), "text/html": f'<div class="xinfer-explorer">{self.answer["html"]}</div>'}
        return (data, *rest) if rest else data


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
