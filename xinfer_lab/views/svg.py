"""Small parts for writing SVG by hand: escaping, numbers, elements, text that fits, and the document around them.

By hand, since no plotting library knows a timeline with fences, and since every function here is a pure function of its
arguments: a picture is the same bytes on every run and machine, and a test compares files. Importing this loads nothing
else. Without a font at hand, the width of text is estimated, on the safe side.
"""

from __future__ import annotations

import hashlib
import html
import re
import unicodedata
from collections.abc import Iterable

__all__ = ["ID", "document", "element", "escape", "fit", "number", "sentence", "text", "text_width"]

ID = "\ue000"
"""Stands for the picture's own id until `document` knows it: a private-use character that `escape` replaces."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif"

# What XML 1.0 cannot say at all, and ID.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue001-\ufffd\U00010000-\U0010ffff]")
_NARROW, _WIDE = frozenset("iIjltfr.,:;'|!()[]{} /\\-·"), frozenset("mwMW@%")


def escape(value: object) -> str:
    """``value`` as XML character data or attribute value; characters that XML cannot hold become U+FFFD."""
    return html.escape(_UNWRITABLE.sub("\ufffd", str(value)), quote=True)


def number(value: float) -> str:
    """A coordinate with at most two decimals, without trailing zeros: ``12.00`` -> ``12``."""
    shown = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if shown in ("-0", "") else shown


def element(name: str, content: str | None = None, /, **attributes: object) -> str:
    """One element. ``content`` is markup already; attribute values are escaped, floats shortened, None left out.

    ``class_`` writes ``class``; other underscores become hyphens. ``id`` and ``url`` name parts of the picture itself:
    ``id="clip"`` writes its id and ``fill_url="clip"`` refers to it.
    """
    parts = [name]
    for key, value in attributes.items():
        if value is not None:
            shown = number(value) if isinstance(value, float) else escape(value)
            if key == "id":
                shown = f"{ID}-{shown}"
            elif key.endswith("_url"):
                key, shown = key.removesuffix("_url"), f"url(#{ID}-{shown})"
            parts.append(f'{key.rstrip("_").replace("_", "-")}="{shown}"')
    head = " ".join(parts)
    return f"<{head}/>" if content is None else f"<{head}>{content}</{name}>"


def text(x: float, y: float, words: object, **attributes: object) -> str:
    """A line of text at ``(x, y)``, its baseline; ``words`` are escaped."""
    return element("text", escape(words), x=float(x), y=float(y), **attributes)


def sentence(words: str) -> str:
    """``words`` with a full stop at the end, unless they end a sentence already."""
    return words if words.endswith((".", "?", "!")) else f"{words}."


def text_width(words: str, size: float) -> float:
    """About how wide ``words`` are in the picture's font at ``size`` pixels: on the safe side for the usual fonts."""
    total = 0.0
    for char in words:
        if char in _NARROW:
            total += 0.38
        elif char in _WIDE:
            total += 0.98
        elif unicodedata.east_asian_width(char) in "WF":
            total += 1.05
        else:
            total += 0.74 if char.isupper() else 0.635
    return total * size


def fit(forms: Iterable[str], width: float, size: float, *, shortest: int = 8) -> str:
    """The first of ``forms`` that fits into ``width`` pixels; else the first one cut off with an ellipsis, if at least
    ``shortest`` characters of it remain; else nothing."""
    candidates = [form for form in forms if form]
    for form in candidates:
        if text_width(form, size) <= width:
            return form
    if candidates and width > 0:
        cut = candidates[0][: int(width / size * 3) + 1]
        while len(cut) > shortest and text_width(cut + "…", size) > width:
            cut = cut[:-1]
        if len(cut) >= shortest and text_width(cut + "…", size) <= width:
            return cut.rstrip() + "…"
    return ""


def document(
    body: str, *, width: float, height: float, title: str, description: str, style: str, definitions: str
) -> str:
    """A whole picture: ``role="img"``, title and description first, styles that reach nothing outside of it.

    `ID` in body, style and definitions becomes an id made from their content, so two pictures in one page never clash.
    """
    digest = hashlib.blake2b("\0".join((body, style, definitions, title)).encode(), digest_size=5).hexdigest()
    attributes = (
        f'xmlns="http://www.w3.org/2000/svg" id="{ID}" role="img" aria-labelledby="{ID}-title {ID}-desc" '
        f'viewBox="0 0 {number(width)} {number(height)}" width="{number(width)}" height="{number(height)}" '
        f'font-family="{escape(FONT)}"'
    )
    head = f'<title id="{ID}-title">{escape(title)}</title>\n<desc id="{ID}-desc">{escape(description)}</desc>\n'
    whole = f"<svg {attributes}>\n{head}<style>{style}</style>\n<defs>{definitions}</defs>\n{body}\n</svg>\n"
    return whole.replace(ID, f"p{digest}")
