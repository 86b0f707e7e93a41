"""Reads layer and slot from a label or a buffer's name, and shortens them for narrow bars."""

from __future__ import annotations

import re

__all__ = ["layer_of", "short_forms", "slot_of_buffer"]

_LAYER = re.compile(r"\blayers?[\s._\[#:=]*(\d+)", re.IGNORECASE)
_SLOT = re.compile(r"\bslots?\[(\d+)\]", re.IGNORECASE)


def layer_of(label: str) -> int | None:
    """The layer that ``label`` names (``"upload layer 3"``, ``"model.layers.3.mlp"``), or None."""
    found = _LAYER.search(label)
    return int(found.group(1)) if found else None


def slot_of_buffer(name: str) -> int | None:
    """The slot that a buffer belongs to by its name (``"slot[1].mlp"`` -> 1), or None."""
    found = _SLOT.search(name)
    return int(found.group(1)) if found else None


def short_forms(label: str) -> tuple[str, ...]:
    """``label``, then ever shorter ways to say it if it names a layer, for bars of ever less width."""
    words = " ".join(label.split())
    layer = layer_of(words)
    if layer is not None:
        return tuple(dict.fromkeys((words, f"layer {layer}", f"L{layer}", str(layer))))
    return (words,) if words else ()
