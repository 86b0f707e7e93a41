"""What a submission brings, made harmless once, on entry: all that is stored, shown or printed later went through here.

Markdown is cleaned in its source, since that is what a marked notebook holds, and every reader renders it in its own
way. An HTML sanitiser would spoil Markdown (``>`` is a quotation, ``a < b`` a comparison), and readers differ in what
they take for code and for HTML. So nothing is parsed here: a blank breaks each construct that could be active, wherever
it stands. No reader makes more than text of ``< script>`` or ``] (javascript:``. Where Markdown becomes HTML,
`feedback.safe` has a sanitiser besides.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

__all__ = ["PICTURES", "pictures", "plain", "plain_data", "source", "svg_image"]

PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What is kept of what was pasted into a text: pictures that cannot hold a script."""

LARGEST_PICTURES = 20 * 2**20
"""Characters of the pictures of one cell that are kept."""

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")
"""Terminal colours and titles."""

_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, those that turn the direction of text, and halves of characters."""

_ELSEWHERE = r"(?!\s*(?:https?://|mailto:|\#|attachment:))"
_ACTIVE = re.compile(
    rf"""
      <(?=[A-Za-z/!?])                             # a tag, a comment, an address in angle brackets
    | \](?=\({_ELSEWHERE})                         # a link that is no plain one to another page
    | \](?=:{_ELSEWHERE}\s*(?:<|[^\s:&\\]*[:&\\])) # the same, as a definition
    | !(?=\[)(?!\[[^\]]*\]\(attachment:)           # a picture that would be loaded from somewhere
    | \\(?=(?:href|url|style|class|cssId|require|includegraphics|html\w*|g?def|let|(?:re)?new\w+)\b)  # TeX's own
    """,
    re.VERBOSE,
)


def plain(text: str) -> str:
    """``text`` without terminal colours, and with a visible mark for each character that would not show."""
    return _UNPRINTABLE.sub("\ufffd", _ESCAPES.sub("", re.sub(r"\r\n?|[\x0b\x0c]", "\n", text)))


def plain_data(data: Any) -> Any:
    """``data``, as JSON has it, with each text in it made `plain`."""
    match data:
        case str():
            return plain(data)
        case list():
            return [plain_data(item) for item in data]
        case Mapping():
            return {plain(str(key)): plain_data(value) for key, value in data.items()}
    return data


def source(kind: str, text: str) -> str:
    """The source ``text`` of a cell of ``kind``: code stays code, of all else nothing is active. Doing it again changes
    nothing.
    """
    text = plain(text)
    return text if kind == "code" else _ACTIVE.sub(lambda found: f"{found[0]} ", text)


def pictures(attachments: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The pictures among ``attachments``, as nbformat has them: name, kind, data."""
    kept: dict[str, dict[str, str]] = {}
    room = LARGEST_PICTURES
    for name, forms in attachments.items():
        for kind in PICTURES:
            data = forms.get(kind) if isinstance(forms, Mapping) else None
            if isinstance(data, str) and len(data) <= room and _is_base64(data) and name not in kept:
                kept[plain(str(name))[:200]] = {kind: "".join(data.split())}
                room -= len(data)
    return kept


def svg_image(svg: str, alt: str) -> Markup:
    """A picture as an image: as such, browsers run no script of an SVG's and load nothing for it."""
    data = base64.b64encode(svg.encode()).decode("ascii")
    return Markup('<img src="data:image/svg+xml;base64,{}" alt="{}">').format(data, alt)


def _is_base64(data: str) -> bool:
    try:
        return bool(base64.b64decode("".join(data.split()), validate=True))
    except (binascii.Error, ValueError):
        return False
