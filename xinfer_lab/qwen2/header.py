"""Reads the header of a safetensors file: where each tensor's bytes lie.

The safetensors library reads tensors but does not say at which byte of the file they start, which a memory map needs.
Layout of the format: 8 bytes, little-endian, the length of the header; the header, a JSON object of name -> {"dtype",
"shape", "data_offsets"}; then the data, which the offsets (relative to its start) cover without holes or overlaps.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from xinfer_lab.qwen2.errors import CheckpointError
from xinfer_lab.qwen2.json_file import POINTER, is_pointer

__all__ = ["WEIGHT_DTYPES", "TensorEntry", "read_header"]

WEIGHT_DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
"""The types that weights may have, by the format's name."""

_ITEM_BITS = {
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "I64": 64,
    "U64": 64,
    "F64": 64,
    "C64": 64,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
}
_PREFIX = 8
_LONGEST_HEADER = 100_000_000
"""Bytes; the limit of the safetensors library."""


@dataclass(frozen=True)
class TensorEntry:
    """One tensor of a file: `nbytes` bytes at byte `offset` of the file. `dtype` is the format's name, such as BF16."""

    name: str
    file: Path
    offset: int
    nbytes: int
    dtype: str
    shape: tuple[int, ...]


def read_header(file: str | Path) -> dict[str, TensorEntry]:
    """The tensors of a safetensors file by name, in the order of their offsets. Reads no data.

    Raises CheckpointError, naming the file, for one that is missing, truncated or not of the format: every range it
    returns lies within the file, and no two overlap.
    """
    file = Path(file)
    if not file.is_file():
        raise CheckpointError(f"{file}: no such file")
    size = file.stat().st_size
    with file.open("rb") as stream:
        prefix = stream.read(_PREFIX)
        if len(prefix) < _PREFIX:
            raise CheckpointError(
                f"{file}: truncated: a safetensors file begins with {_PREFIX} bytes of header "
                f"length, but the file has {size} bytes"
            )
        length = int.from_bytes(prefix, "little")
        if length > size - _PREFIX:
            if is_pointer(prefix + stream.read(_PREFIX * 2)):
                raise CheckpointError(f"{file}: {POINTER}")
            raise CheckpointError(
                f"{file}: truncated or no safetensors file: its header should take {length} bytes, "
                f"but only {size - _PREFIX} follow"
            )
        if length > _LONGEST_HEADER:
            raise CheckpointError(
                f"{file}: its header should take {length} bytes, more than the {_LONGEST_HEADER} that the format allows"
            )
        content = _parse(file, stream.read(length))
    start = _PREFIX + length
    entries = [_entry(file, name, value, start, size) for name, value in content.items() if name != "__metadata__"]
    entries.sort(key=lambda entry: (entry.offset, entry.nbytes))
    _check_cover(file, entries, start, size)
    return {entry.name: entry for entry in entries}


def _parse(file: Path, header: bytes) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = dict(pairs)
        if len(keys) != len(pairs):
            name = next(key for i, (key, _) in enumerate(pairs) if key in dict(pairs[:i]))
            raise CheckpointError(f"{file}: its header names {name!r} twice")
        return keys

    try:
        content = json.loads(header.decode("utf-8"), object_pairs_hook=unique)
    except CheckpointError:
        raise
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{file}: its header is not valid JSON ({error})") from None
    if not isinstance(content, dict):
        raise CheckpointError(f"{file}: its header must be a JSON object, but is a {type(content).__name__}")
    return content


def _entry(file: Path, name: str, value: Any, start: int, size: int) -> TensorEntry:
    if not name.isprintable():
        raise CheckpointError(f"{file}: the name {name!r} of a tensor has characters that cannot be shown")
    where = f"{file}: tensor {name}"
    if not isinstance(value, dict):
        raise CheckpointError(f"{where}: its header entry must be an object, but is {value!r}")
    dtype = value.get("dtype")
    if not isinstance(dtype, str):
        raise CheckpointError(f"{where}: its dtype must be a name, but is {dtype!r}")
    shape = _sizes(value.get("shape"))
    if shape is None:
        raise CheckpointError(f"{where}: its shape must be a list of sizes, but is {value.get('shape')!r}")
    offsets = _sizes(value.get("data_offsets"))
    if offsets is None or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise CheckpointError(
            f"{where}: its data_offsets must be a start and an end, but are {value.get('data_offsets')!r}"
        )
    begin, end = offsets
    if start + end > size:
        raise CheckpointError(
            f"{where}: truncated: its data should end at byte {start + end}, but the file has {size} bytes"
        )
    if dtype in _ITEM_BITS:
        wanted = math.prod(shape) * _ITEM_BITS[dtype] // 8
        if end - begin != wanted:
            raise CheckpointError(
                f"{where}: {dtype} of shape {list(shape)} takes {wanted} bytes, but its data_offsets span {end - begin}"
            )
    return TensorEntry(name, file, start + begin, end - begin, dtype, shape)


def _sizes(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, list):
        return None
    if any(isinstance(item, bool) or not isinstance(item, int) or item < 0 for item in value):
        return None
    return tuple(value)


def _check_cover(file: Path, entries: list[TensorEntry], start: int, size: int) -> None:
    reached, last = start, "the header"
    for entry in entries:
        if entry.offset < reached:
            raise CheckpointError(
                f"{file}: tensors {last} and {entry.name} overlap: the second starts at byte "
                f"{entry.offset}, before the first ends at byte {reached}"
            )
        if entry.offset > reached:
            raise CheckpointError(
                f"{file}: bytes {reached} to {entry.offset} between {last} and {entry.name} belong to no tensor"
            )
        reached, last = entry.offset + entry.nbytes, entry.name
    if reached != size:
        raise CheckpointError(f"{file}: its tensors end at byte {reached}, but the file has {size} bytes")
