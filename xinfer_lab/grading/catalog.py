"""All pieces of all labs, by name."""

from __future__ import annotations

from importlib import import_module

from xinfer_lab.grading.piece import Piece
from xinfer_lab.grading.rooms import LABS

__all__ = ["find_piece", "pieces_of"]


def pieces_of(lab: str) -> tuple[Piece, ...]:
    """The pieces of ``lab`` (``"lab1"``) in the notebook's order. Raises ValueError for an unknown lab."""
    if lab not in LABS:
        raise ValueError(f"there is no {lab!r}; the labs are {', '.join(LABS)}")
    pieces: tuple[Piece, ...] = import_module(f"xinfer_lab.labs.{lab}.pieces").PIECES
    return pieces


def find_piece(name: str) -> Piece:
    """The piece called ``name``, as in ``"lab1.layer_bytes"``.

    Raises ValueError, with the names there are, for any other.
    """
    pieces = pieces_of(name.partition(".")[0])
    for piece in pieces:
        if piece.name == name:
            return piece
    raise ValueError(f"there is no piece {name!r}; this lab has {', '.join(piece.name for piece in pieces)}")
