"""What students wrote, as HTML in which it is nothing but text, code and formulas.

No HTML of theirs is kept, no picture is loaded that is not in the notebook itself, and what is too long is cut: a page
shows what was handed in, it does not run it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

import mistune
from markupsafe import Markup
from mistune.util import safe_entity
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from xinfer_lab.course.feedback.formulas import mathml

__all__ = ["LONGEST", "code", "cut", "markdown", "plain", "svg_image"]

LONGEST = 20_000
"""Characters of one source or output that a page shows."""

MOST_FORMULAS = 200
"""Formulas of one text that are set; further ones are shown as they were written."""

PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What may be shown of what was pasted into a text: pictures that cannot hold a script."""

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")
"""Terminal colours and titles."""

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, those that turn the direction of text, and halves of characters."""


def plain(text: str) -> str:
    """``text`` without terminal colours, and with a visible mark for each character that would not show."""
    return _UNPRINTABLE.sub("\ufffd", _ESCAPES.sub("", text))


def cut(text: str, most: int = LONGEST) -> str:
    """The beginning of `plain` ``text``, and how much was left out."""
    # Escapes take room too: enough is read that they cannot use it up, and no more.
    shown = plain(text[: 4 * most])
    if len(shown) <= most and len(text) <= 4 * most:
        return shown
    return f"{shown[:most]}\n… ({len(text):,} characters in all)"


def code(source: str) -> Markup:
    """Python ``source`` with its tokens marked up."""
    formatter: HtmlFormatter[str] = HtmlFormatter(nowrap=True)
    shown = highlight(cut(source), PythonLexer(stripnl=False), formatter)
    return Markup('<pre class="code"><code>') + Markup(shown) + Markup("</code></pre>")


def svg_image(svg: str, alt: str) -> Markup:
    """A picture as an image: as such, browsers run no script of an SVG's and load nothing for it."""
    data = base64.b64encode(svg.encode()).decode("ascii")
    return Markup('<img src="data:image/svg+xml;base64,{}" alt="{}">').format(data, alt)


def markdown(source: str, attachments: Mapping[str, Any] | None = None) -> Markup:
    """Markdown ``source`` as HTML: tables, formulas and links; raw HTML is shown as it was written.

    ``attachments`` are nbformat's. What is too long for `cut`, or breaks the parser, is shown as plain text.
    """
    if len(source) > LONGEST:
        return Markup('<pre class="plain">{}</pre>').format(cut(source))
    parse = mistune.create_markdown(renderer=_Renderer(attachments or {}), plugins=["math", "table", "strikethrough"])
    try:
        return Markup(parse(plain(source)))
    except (RecursionError, ValueError, LookupError, TypeError, AttributeError):
        return Markup('<pre class="plain">{}</pre>').format(cut(source))


class _Renderer(mistune.HTMLRenderer):
    """Escapes raw HTML, sets formulas, and shows only pictures that are in the notebook."""

    def __init__(self, attachments: Mapping[str, Any]) -> None:
        super().__init__(escape=True)
        self._attachments, self._formulas = attachments, 0

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """A picture out of the attachments, or what stands in its place."""
        found = self._attachments.get(url.removeprefix("attachment:")) if url.startswith("attachment:") else None
        for kind in PICTURES:
            data = found.get(kind) if isinstance(found, Mapping) else None
            if isinstance(data, str) and _is_base64(data):
                return _filled('<img src="data:{};base64,{}" alt="{}">', kind, "".join(data.split()), text)
        return _filled('<span class="left-out">[picture left out: {}]</span>', text or url)

    def text(self, text: str) -> str:
        """Text: a character that was written as an entity is that character."""
        return safe_entity(text)

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        """A heading below the page's own."""
        return super().heading(text, min(level + 3, 6))

    def inline_math(self, text: str) -> str:
        """A formula within a line."""
        return self._formula(text, display=False)

    def block_math(self, text: str) -> str:
        """A formula on its own."""
        return f"<p>{self._formula(text, display=True)}</p>"

    def _formula(self, source: str, *, display: bool) -> str:
        self._formulas += 1
        if self._formulas > MOST_FORMULAS:
            return _filled("<code>{}</code>", source)
        return str(mathml(source, display=display))


def _filled(pattern: str, *parts: str) -> str:
    """``pattern`` with ``parts`` in it, escaped. No `Markup`: to that, mistune's own tags would be text to escape."""
    return str(Markup(pattern).format(*parts))


def _is_base64(data: str) -> bool:
    try:
        return bool(base64.b64decode("".join(data.split()), validate=True))
    except (binascii.Error, ValueError):
        return False
