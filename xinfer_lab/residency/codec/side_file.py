"""The side file: a checkpoint's layers in their coded form, made once, read by memory map.

It is a safetensors file. Each layer is one uint8 tensor, named as `encoded_name` says, so that it can be copied to a
GPU in one piece; the file's metadata say what is in it: version, codec, the files that it was made of (name, size, time
of the last change, digest of the header), a table of all tensors, and a digest of all that. The data start at a
multiple of 4096 bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.qwen2.errors import CheckpointError
from xinfer_lab.qwen2.filemap import map_bytes
from xinfer_lab.qwen2.header import read_header
from xinfer_lab.qwen2.layout import layer_layout, tensor_name
from xinfer_lab.residency.codec.encoded import checksum, codec_width, encode_layer
from xinfer_lab.residency.codec.format import CODECS, EncodedLayer, aligned, encoded_name
from xinfer_lab.residency.codec.table import SideFileError, layer_from_json, layer_to_json
from xinfer_lab.residency.weights import CheckpointWeights

__all__ = ["SideFile", "SideFileError", "open_side_file", "side_file_path", "write_side_file"]

_VERSION = "1"
_DATA_ALIGNMENT = 4096
_KEYS = ("format", "version", "codec", "sources", "table", "digest")
_FORMAT = "xinfer-lab exponent codec"

Progress = Callable[[int], None]
"""Called with a layer's number once that layer is done."""


def side_file_path(checkpoint: Path, codec: str) -> Path:
    """Where the side file of ``checkpoint`` (a directory, or a file in one) is looked for: beside it."""
    return (checkpoint if checkpoint.is_dir() else checkpoint.parent) / f"exponents-{codec}.safetensors"


def open_side_file(
    checkpoint: Checkpoint,
    codec: str,
    path: str | Path | None = None,
    *,
    device: torch.device | str = "cpu",
    on_encode: Progress | None = None,
) -> SideFile:
    """The side file at ``path`` (default: beside the checkpoint); `write_side_file` makes it if there is none."""
    file = side_file_path(checkpoint.path, codec) if path is None else Path(path)
    codec_width(codec, checkpoint.config.dtype)
    if not file.exists():
        write_side_file(checkpoint, codec, file, device=device, on_layer=on_encode)
    side = SideFile.open(file, checkpoint)
    if side.codec != codec:
        raise SideFileError(file, f"holds {side.codec} codes, but {codec} ones were asked for; name another file")
    return side


def write_side_file(
    checkpoint: Checkpoint,
    codec: str,
    path: str | Path | None = None,
    *,
    device: torch.device | str = "cpu",
    on_layer: Progress | None = None,
) -> Path:
    """Encode all layers of ``checkpoint`` into ``path`` (default: beside the checkpoint); replaces a file of that name.

    The file appears complete or not at all. ``device`` encodes (a CUDA device is far faster); ``on_layer(i)`` is called
    after layer i has been written. Memory: one coded layer. Raises `RequestError` for weights that are not bfloat16,
    and `SideFileError` where the file cannot be written.
    """
    file = side_file_path(checkpoint.path, codec) if path is None else Path(path)
    width = codec_width(codec, checkpoint.config.dtype)
    made = file.parent / f".{file.name}-{uuid.uuid4().hex}"
    try:
        try:
            _write(made, checkpoint, codec, width, device, on_layer)
            os.replace(made, file)
        finally:
            made.unlink(missing_ok=True)
    except OSError as error:
        raise SideFileError(file, f"cannot be written ({error.strerror or error})", remedy="") from None
    return file


def _write(
    made: Path,
    checkpoint: Checkpoint,
    codec: str,
    width: int,
    device: torch.device | str,
    on_layer: Progress | None,
) -> None:
    weights = CheckpointWeights(checkpoint)
    count = checkpoint.config.num_hidden_layers
    sources = _sources(checkpoint)
    tables: list[EncodedLayer] = []
    with made.open("wb") as stream:
        # The header comes first but is known last. Numbers have at most 20 digits; a row of the table has nine columns.
        rows = count * sum(len(group.tensors) for group in layer_layout(checkpoint.config).groups)
        start = aligned(8192 + 2 * len(json.dumps(sources)) + 300 * rows + 200 * count, _DATA_ALIGNMENT)
        stream.seek(start)
        for layer in range(count):
            table, parts = encode_layer(weights, layer, width, device)
            base = stream.tell()
            for tensor, part in zip(table.tensors, parts, strict=True):
                stream.seek(base + tensor.offset)
                stream.write(part.numpy().data)
            stream.write(bytes(base + table.nbytes - stream.tell()))
            tables.append(table)
            checkpoint.unmap()
            if on_layer is not None:
                on_layer(layer)
        header = json.dumps(_header(codec, sources, tables), ensure_ascii=True).encode()
        if 8 + len(header) > start:
            raise AssertionError(f"the header needs {len(header)} bytes, and {start} were kept")
        stream.seek(0)
        # Spaces after the object are part of the format.
        stream.write((start - 8).to_bytes(8, "little") + header.ljust(start - 8))


def _header(codec: str, sources: list[dict[str, Any]], tables: list[EncodedLayer]) -> dict[str, Any]:
    entries, offset = {}, 0
    for layer, table in enumerate(tables):
        end = offset + table.nbytes
        entries[encoded_name(layer)] = {"dtype": "U8", "shape": [table.nbytes], "data_offsets": [offset, end]}
        offset = end
    metadata = {
        "format": _FORMAT,
        "version": _VERSION,
        "codec": codec,
        "sources": json.dumps(sources),
        "table": json.dumps([layer_to_json(table) for table in tables], separators=(",", ":")),
    }
    return {"__metadata__": {**metadata, "digest": _digest(metadata)}, **entries}


def _digest(metadata: dict[str, str]) -> str:
    told = json.dumps({key: value for key, value in metadata.items() if key != "digest"}, sort_keys=True)
    return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()


def _sources(checkpoint: Checkpoint) -> list[dict[str, Any]]:
    """What tells the files of a checkpoint from others, without reading their data."""
    found = []
    for file in sorted({checkpoint.entry(name).file for name in checkpoint.names()}):
        state = file.stat()
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            digest = hashlib.blake2b(stream.read(length), digest_size=16).hexdigest()
        found.append({"name": file.name, "size": state.st_size, "changed": state.st_mtime_ns, "header": digest})
    return found


class SideFile:
    """An open side file, checked against its checkpoint. Holds nothing open: its pages are mapped when read."""

    def __init__(self, path: Path, codec: str, layers: tuple[EncodedLayer, ...], starts: tuple[int, ...]) -> None:
        self.path, self.codec, self.layers = path, codec, layers
        self._starts = starts
        self._sizes = {encoded_name(layer): table.nbytes for layer, table in enumerate(layers)}
        self._verified: set[int] = set()
        self._map: torch.Tensor | None = None

    @classmethod
    def open(cls, path: str | Path, checkpoint: Checkpoint, *, on_layer: Progress | None = None) -> SideFile:
        """The side file at ``path``, which was made of ``checkpoint``. Reads its header alone.

        Raises `SideFileError` where it is missing, damaged, of another version, or made of other weights. Where the
        checkpoint's files have only another time of their last change (they were copied, say), all their weights are
        read and compared; ``on_layer(i)`` is called as layer i has been.
        """
        file = Path(path)
        try:
            entries, metadata = read_header(file), _read_metadata(file)
        except (CheckpointError, OSError) as error:
            said = str(error).removeprefix(f"{file}: ")
            raise SideFileError(file, f"is no side file that can be used: {said}") from None
        codec, layers = _check_metadata(file, metadata, checkpoint)
        sizes = {encoded_name(layer): table.nbytes for layer, table in enumerate(layers)}
        if {name: entry.nbytes for name, entry in entries.items()} != sizes:
            raise SideFileError(file, "is damaged: its tensors are not those of its table")
        starts = tuple(entries[encoded_name(layer)].offset for layer in range(len(layers)))
        side = cls(file, codec, layers, starts)
        side._check_sources(json.loads(metadata["sources"]), checkpoint, on_layer)
        return side

    def _check_sources(self, made_of: list[dict[str, Any]], checkpoint: Checkpoint, on_layer: Progress | None) -> None:
        now = _sources(checkpoint)
        if now == made_of:
            return
        if [{**source, "changed": 0} for source in now] != [{**source, "changed": 0} for source in made_of]:
            raise SideFileError(self.path, f"is stale: it was made of other files than {checkpoint.path} holds now")
        for layer, table in enumerate(self.layers):
            for tensor in table.tensors:
                name = tensor_name(layer, tensor.name)
                if checksum(checkpoint.bytes(name)) != tensor.source_checksum:
                    raise SideFileError(self.path, f"is stale: {name} has changed in {checkpoint.path}")
            checkpoint.unmap()
            if on_layer is not None:
                on_layer(layer)

    def nbytes(self, name: str) -> int | None:
        """Bytes of the layer ``name``; None if there is none."""
        return self._sizes.get(name)

    def bytes(self, name: str) -> torch.Tensor:
        """The layer's bytes, a view of the memory map. The first time, `verify` looks at all of them."""
        layer = list(self._sizes).index(name)
        self.verify(layer)
        return self._view(layer)

    def verify(self, layer: int) -> None:
        """Compare the bytes of ``layer`` with their checksums, once. Raises `SideFileError` where they differ."""
        if layer in self._verified:
            return
        data = self._view(layer)
        for tensor in self.layers[layer].tensors:
            if checksum(data[tensor.offset : tensor.offset + tensor.nbytes]) != tensor.checksum:
                name = tensor_name(layer, tensor.name)
                raise SideFileError(self.path, f"is damaged: the bytes of {name} have changed")
        self._verified.add(layer)

    def unmap(self) -> None:
        """Let go of the file's pages until the next read."""
        self._map = None

    def _view(self, layer: int) -> torch.Tensor:
        if self._map is None:
            self._map = map_bytes(self.path)
        start, size = self._starts[layer], self.layers[layer].nbytes
        if self._map.numel() < start + size:
            raise SideFileError(self.path, f"was cut short: layer {layer} should end at byte {start + size}")
        return self._map[start : start + size]


def _read_metadata(file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        found = json.loads(stream.read(length)).get("__metadata__")
    return found if isinstance(found, dict) else {}


def _check_metadata(
    file: Path, metadata: dict[str, Any], checkpoint: Checkpoint
) -> tuple[str, tuple[EncodedLayer, ...]]:
    if metadata.get("format") != _FORMAT or set(metadata) != set(_KEYS):
        raise SideFileError(file, "is no side file of the exponent codec", remedy="name another file")
    if metadata["version"] != _VERSION:
        raise SideFileError(file, f"is of version {metadata['version']!r}, and this package reads version {_VERSION}")
    if not all(isinstance(value, str) for value in metadata.values()) or _digest(metadata) != metadata["digest"]:
        raise SideFileError(file, "is damaged: its metadata have changed")
    codec = metadata["codec"]
    codec_width(codec, checkpoint.config.dtype)
    table = json.loads(metadata["table"])
    if len(table) != checkpoint.config.num_hidden_layers:
        raise SideFileError(
            file, f"holds {len(table)} layers, and {checkpoint.path} has {checkpoint.config.num_hidden_layers}"
        )
    places = [place for group in layer_layout(checkpoint.config).groups for place in group.tensors]
    return codec, tuple(layer_from_json(file, rows, CODECS[codec], places) for rows in table)
