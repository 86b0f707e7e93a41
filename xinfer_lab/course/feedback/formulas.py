"""Formulas in LaTeX as MathML, which browsers set by themselves: nothing is loaded for it, and no script runs."""

from __future__ import annotations

from xml.etree import ElementTree

from latex2mathml.converter import convert
from markupsafe import Markup

__all__ = ["mathml"]

LONGEST = 1_000
"""Characters of a formula that is set. A longer one is shown as it was written."""

DEEPEST = 40
"""Braces within braces; the converter calls itself for each."""

ELEMENTS = {
    "math", "merror", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded", "mphantom", "mprescripts",
    "mroot", "mrow", "ms", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr",
    "munder", "munderover", "none", "semantics",
}  # fmt: skip
ATTRIBUTES = {
    "accent", "accentunder", "columnalign", "columnlines", "columnspacing", "depth", "display", "displaystyle", "fence",
    "form", "height", "linethickness", "lspace", "mathvariant", "maxsize", "minsize", "movablelimits", "rowlines",
    "rowspacing", "rspace", "scriptlevel", "separator", "stretchy", "symmetric", "width",
}  # fmt: skip


def mathml(source: str, *, display: bool) -> Markup:
    """The formula ``source``, on a line of its own (``display``) or within one; what cannot be set is shown as written.

    Of what the converter makes, only elements and attributes that set a formula are kept: no links, no styles.
    """
    if len(source) > LONGEST or source.count("{") > DEEPEST or source.count("\\left") > DEEPEST:
        return _written(source)
    try:
        root = ElementTree.fromstring(convert(source, display="block" if display else "inline"))
    except Exception:  # the converter's own errors have no common class, and none may cost a student his page
        return _written(source)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        if element.tag not in ELEMENTS:
            return _written(source)
        element.attrib = {name: value for name, value in element.attrib.items() if name in ATTRIBUTES}
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _written(source: str) -> Markup:
    return Markup("<code>{}</code>").format(source)
