"""Names on several cards: a queue or buffer of card n is called ``name@n``; those of the first have no number."""

from __future__ import annotations

import functools

__all__ = ["node_of", "on_node"]


def on_node(name: str, node: int) -> str:
    """``name`` as it is called on ``node``: unchanged on the first, ``"name@1"`` on the second."""
    return name if node == 0 else f"{name}@{node}"


@functools.cache
def node_of(queue: str) -> int:
    """The node that a queue of this name belongs to."""
    _, at, number = queue.rpartition("@")
    return int(number) if at and number.isdecimal() else 0
