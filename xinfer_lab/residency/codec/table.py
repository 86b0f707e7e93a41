"""The table of a side file: where each tensor lies and how it is coded, as rows of JSON, checked when read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xinfer_lab.qwen2.errors import ModelFileError
from xinfer_lab.qwen2.layout import TensorPlace
from xinfer_lab.residency.codec.format import ALIGNMENT, Coding, EncodedLayer, EncodedTensor

__all__ = ["SideFileError", "layer_from_json", "layer_to_json"]


class SideFileError(ModelFileError):
    """A side file that is missing, damaged, or not of the checkpoint at hand; the message is for the user."""

    def __init__(self, file: Path, message: str, remedy: str = "delete it, and it is made again") -> None:
        super().__init__(f"{file}: {message}" + (f" ({remedy})" if remedy else ""))


def layer_to_json(layer: EncodedLayer) -> list[list[Any]]:
    """One row for each tensor: name, offset, bytes, weights; width, base, escapes (null if it is not coded); and the
    checksums of the coded bytes and of the weights."""
    return [
        [
            tensor.name, tensor.offset, tensor.nbytes, tensor.count,
            *((c.width, c.base, c.escapes) if (c := tensor.coding) is not None else (None, None, None)),
            tensor.checksum, tensor.source_checksum,
        ]
        for tensor in layer.tensors
    ]  # fmt: skip


def layer_from_json(file: Path, rows: Any, width: int, places: Sequence[TensorPlace]) -> EncodedLayer:
    """The layer that ``rows`` describe: it must have the tensors ``places``, coded with ``width`` bits or not at all.

    Raises `SideFileError`, naming ``file``, where it does not fit together.
    """
    try:
        tensors = tuple(_tensor(row, width, place) for row, place in zip(rows, places, strict=True))
        end = 0
        for tensor in tensors:
            if tensor.offset < end or tensor.offset % ALIGNMENT:
                raise ValueError(f"{tensor.name} begins at {tensor.offset}, before the tensor before it ends")
            end = tensor.offset + tensor.nbytes
    except (TypeError, ValueError) as error:
        raise SideFileError(file, f"is damaged: its table does not fit the model ({error})") from None
    return EncodedLayer(tensors)


def _tensor(row: Any, width: int, place: TensorPlace) -> EncodedTensor:
    name, offset, nbytes, count, coded_width, base, escapes, checksum, source_checksum = row
    numbers = (offset, nbytes, count, checksum, source_checksum)
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError(f"the row of {place.name} holds {numbers}")
    if name != place.name or count != math.prod(place.shape):
        raise ValueError(f"{name!r} with {count} weights stands where {place.name} with {place.shape} is wanted")
    coding = None if coded_width is None else Coding(coded_width, base, count, escapes)
    if coding is not None and coding.width != width:
        raise ValueError(f"{name} has codes of {coding.width} bits, not {width}")
    if nbytes != (place.nbytes if coding is None else coding.nbytes):
        raise ValueError(f"{name} has {nbytes} bytes, which is not what its coding takes")
    return EncodedTensor(name, offset, nbytes, count, coding, checksum, source_checksum)
