"""Formulas in LaTeX as MathML, which browsers set by themselves: nothing is loaded for it, and no script runs."""

from __future__ import annotations

from latex2mathml.converter import convert
from markupsafe import Markup

__all__ = ["mathml"]

LONGEST = 1_000
"""Characters of a formula that is set. A longer one is shown as it was written."""

DEEPEST = 40
"""Braces within braces; the converter calls itself for each."""


def mathml(source: str, *, display: bool) -> Markup:
    """The formula ``source``, on a line of its own (``display``) or within one; what cannot be set is shown as written.

    What the converter makes is still to be sanitised.
    """
    if len(source) > LONGEST or source.count("{") > DEEPEST or source.count("\\left") > DEEPEST:
        return _written(source)
    try:
        return Markup(convert(source, display="block" if display else "inline"))
    except Exception:  # the converter's own errors have no common class, and none may cost a student their page
        return _written(source)


def _written(source: str) -> Markup:
    return Markup("<code>{}</code>").format(source)
