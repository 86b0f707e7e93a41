"""What students and graders wrote, as HTML that a page can hold: for feedback pages and for Formgrader.

Markdown is rendered by mistune, formulas by `mathml`, and all of it goes through nh3, which keeps what is named here
and nothing else. What is too long is cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mistune
import nh3
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from xinfer_lab.course.clean import PICTURES, svg_image
from xinfer_lab.course.feedback.formulas import mathml

__all__ = ["LONGEST", "code", "cut", "markdown"]

LONGEST = 20_000
"""Characters of one source or output that a page shows."""

MOST_FORMULAS = 200
"""Formulas of one text that are set; further ones are shown as they were written."""

_MATH = {
    "math", "merror", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded", "mphantom", "mprescripts",
    "mroot", "mrow", "ms", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr",
    "munder", "munderover", "none", "semantics",
}  # fmt: skip
_MATH_ATTRIBUTES = {
    "accent", "accentunder", "columnalign", "columnlines", "columnspacing", "depth", "display", "displaystyle", "fence",
    "form", "height", "linethickness", "lspace", "mathvariant", "maxsize", "minsize", "movablelimits", "rowlines",
    "rowspacing", "rspace", "scriptlevel", "separator", "stretchy", "symmetric", "width",
}  # fmt: skip
_SHOWN = tuple(f"data:{kind};base64," for kind in (*PICTURES, "image/svg+xml"))


def _attribute(tag: str, name: str, value: str) -> str | None:
    """An attribute's value, or None where it goes: pictures are in the page itself, and links lead to other pages."""
    if name == "src":
        return value if value.startswith(_SHOWN) else None
    if name == "href":
        return value if value.startswith(("https://", "http://", "mailto:", "#")) else None
    return value


_SANITISER = nh3.Cleaner(
    tags=nh3.ALLOWED_TAGS - {"map", "area", "nav", "header", "footer"} | _MATH,
    attributes={**nh3.ALLOWED_ATTRIBUTES, **{tag: _MATH_ATTRIBUTES for tag in _MATH}},
    allowed_classes={"span": {"left-out"}},
    attribute_filter=_attribute,
    url_schemes={"http", "https", "mailto", "data"},
)


def cut(text: str, most: int = LONGEST) -> str:
    """The beginning of ``text``, and how much was left out."""
    return text if len(text) <= most else f"{text[:most]}\n… ({len(text):,} characters in all)"


def code(source: str) -> Markup:
    """Python ``source`` with its tokens marked up."""
    formatter: HtmlFormatter[str] = HtmlFormatter(nowrap=True)
    shown = highlight(cut(source), PythonLexer(stripnl=False), formatter)
    return Markup('<pre class="code"><code>') + Markup(shown) + Markup("</code></pre>")


def markdown(source: str, attachments: Mapping[str, Any] | None = None, *, below: int = 3) -> Markup:
    """Markdown ``source`` as HTML: tables, formulas, links, and pictures out of nbformat's ``attachments``.

    Headings are ``below`` levels below what they say. What is too long for `cut`, or breaks the parser, is shown as
    plain text.
    """
    try:
        if len(source) <= LONGEST:
            renderer = _Renderer(attachments or {}, below)
            parse = mistune.create_markdown(renderer=renderer, plugins=["math", "table", "strikethrough"])
            return Markup(_SANITISER.clean(str(parse(source))))
    except (RecursionError, ValueError, LookupError, TypeError, AttributeError):
        pass
    return Markup('<pre class="plain">{}</pre>').format(cut(source))


class _Renderer(mistune.HTMLRenderer):
    """Sets formulas, and shows only pictures that are in the notebook."""

    def __init__(self, attachments: Mapping[str, Any], below: int) -> None:
        super().__init__(escape=False)
        self._attachments, self._below, self._formulas = attachments, below, 0

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """A picture out of the attachments, or what stands in its place."""
        found = self._attachments.get(url.removeprefix("attachment:"), {}) if url.startswith("attachment:") else {}
        if "image/svg+xml" in found:
            return str(svg_image("".join(found["image/svg+xml"]), text))
        address = next((f"data:{kind};base64,{found[kind]}" for kind in PICTURES if kind in found), url)
        if address.startswith(_SHOWN):
            return _filled('<img src="{}" alt="{}">', address, text)
        return _filled('<span class="left-out">[picture left out: {}]</span>', text or url)

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        """A heading below the page's own."""
        return super().heading(text, min(level + self._below, 6))

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
