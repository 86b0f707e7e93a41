"""The command stream: records in the order in which they were issued, plus the small inputs that they name.

It is data. It can be saved, loaded, drawn, analysed and replayed; it carries no weights. The JSON form is validated against
a schema that is derived from the record types, so nothing but plain records ever comes out of `CommandStream.load`.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import functools
import json
import typing
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from xinfer_lab.device.errors import StreamError
from xinfer_lab.device.records import DTYPE_BYTES, HEAPS, RECORD_TYPES, Record, Source, Span, View

__all__ = ["MAX_INPUT_BYTES", "CommandStream", "record_from_dict", "record_to_dict", "stream_schema"]

FORMAT, VERSION = "xinfer-lab command stream", 1
MAX_INPUT_BYTES = 2**24
"""Inputs (token ids and the like) of one stream, together, in bytes: a stream is no way to carry weights."""

_COUNT = {"type": "integer", "minimum": 0, "maximum": 2**53}
_NAME = {"type": "string", "minLength": 1, "maxLength": 256}
_TEXT = {"type": "string", "maxLength": 1024}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
    }


_SPAN = _object({"buffer": _NAME, "offset": _COUNT, "size": _COUNT})
_SOURCE = _object({"name": _NAME, "offset": _COUNT, "size": _COUNT})
_VIEW = _object(
    {
        "buffer": _NAME,
        "offset": _COUNT,
        "shape": {"type": "array", "items": _COUNT, "maxItems": 8},
        "dtype": {"enum": sorted(DTYPE_BYTES)},
    }
)
_SCALAR = {"type": ["integer", "number", "string", "boolean", "null"], "maxLength": 256}
_BY_TYPE: dict[Any, dict[str, Any]] = {
    int: _COUNT,
    bool: {"type": "boolean"},
    Span: _SPAN,
    Source: _SOURCE,
    dict[str, View]: {"type": "object", "additionalProperties": _VIEW, "maxProperties": 64},
    "params": {"type": "object", "additionalProperties": _SCALAR, "maxProperties": 64},
}
_BY_NAME: dict[str, dict[str, Any]] = {
    "heap": {"enum": list(HEAPS)},
    "where": _TEXT,
    "label": _TEXT,
    "digest": {"type": "string", "pattern": "^([0-9a-f]{32})?$"},
}


@functools.cache
def _field_types(kind: type[Record]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _field_schema(name: str, hint: Any) -> dict[str, Any]:
    if name in _BY_NAME:
        return _BY_NAME[name]
    if hint is str:
        return _NAME
    return _BY_TYPE["params" if name == "params" else hint]


def _record_schema(op: str) -> dict[str, Any]:
    fields = {name: _field_schema(name, hint) for name, hint in _field_types(RECORD_TYPES[op]).items()}
    return _object({"op": {"const": op}, **fields})


def stream_schema() -> dict[str, Any]:
    """The JSON Schema (draft 7) of a saved command stream."""
    schema = _object(
        {
            "format": {"const": FORMAT},
            "version": {"const": VERSION},
            "inputs": {"type": "object", "additionalProperties": {"type": "string"}},
            "records": {"type": "array", "items": {"oneOf": [_record_schema(op) for op in RECORD_TYPES]}},
        }
    )
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": FORMAT, **schema}


@functools.cache
def _validator(op: str) -> Callable[[Any], Any]:
    import fastjsonschema

    validate: Callable[[Any], Any] = fastjsonschema.compile(
        {"$schema": "http://json-schema.org/draft-07/schema#", **_record_schema(op)}
    )
    return validate


def record_to_dict(record: Record) -> dict[str, Any]:
    """``record`` as JSON-ready data, with its ``op``."""
    data = {"op": record.op, **dataclasses.asdict(record)}
    for view in data.get("operands", {}).values():
        view["shape"] = list(view["shape"])
    return data


def _refuse_fractional_counts(op: str, data: Any, name: str = "record") -> None:
    # JSON Schema takes 4.0 for an integer; sizes and offsets here are Python ints and nothing else.
    if isinstance(data, dict):
        for key, value in data.items():
            if key != "params":
                _refuse_fractional_counts(op, value, key)
    elif isinstance(data, list):
        for value in data:
            _refuse_fractional_counts(op, value, name)
    elif isinstance(data, float):
        raise StreamError(f"a record of kind {op!r} does not fit the schema: {name} must be an integer, not {data!r}")


def record_from_dict(data: Any) -> Record:
    """The record that ``data`` says. Raises `StreamError` unless it fits the schema exactly."""
    import fastjsonschema

    op = data.get("op") if isinstance(data, dict) else None
    if not isinstance(op, str) or op not in RECORD_TYPES:
        raise StreamError(f"a record's op must be one of {', '.join(RECORD_TYPES)}, not {op!r}")
    try:
        _validator(op)(data)
    except fastjsonschema.JsonSchemaException as error:
        raise StreamError(f"a record of kind {op!r} does not fit the schema: {error.message}") from None
    kind = RECORD_TYPES[op]
    _refuse_fractional_counts(op, data)
    values = {}
    for name, hint in _field_types(kind).items():
        value = data[name]
        if hint is Span or hint is Source:
            value = hint(**value)
        elif name == "operands":
            value = {key: View(**{**view, "shape": tuple(view["shape"])}) for key, view in value.items()}
        values[name] = value
    return kind(**values)


class CommandStream:
    """An ordered list of records, and ``inputs``: the bytes of the small named sources that its host writes use."""

    def __init__(self, records: Iterable[Record] = (), inputs: dict[str, bytes] | None = None) -> None:
        self.records: list[Record] = list(records)
        self.inputs: dict[str, bytes] = dict(inputs or {})

    def append(self, record: Record) -> int:
        """Add ``record`` and return its index."""
        self.records.append(record)
        return len(self.records) - 1

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> Record:
        return self.records[index]

    def without(self, *indices: int) -> CommandStream:
        """A copy that lacks the records at ``indices``: what a program would issue that forgot those lines."""
        gone = {index % len(self.records) for index in indices}
        return CommandStream((r for i, r in enumerate(self.records) if i not in gone), self.inputs)

    def to_dict(self) -> dict[str, Any]:
        """The stream as JSON-ready data."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "inputs": {name: base64.b64encode(data).decode("ascii") for name, data in self.inputs.items()},
            "records": [record_to_dict(record) for record in self.records],
        }

    @classmethod
    def from_dict(cls, data: Any) -> CommandStream:
        """The stream that ``data`` says. Raises `StreamError` naming the first record that does not fit the schema."""
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise StreamError(f"this is no command stream: its format is not {FORMAT!r}")
        if data.get("version") != VERSION:
            raise StreamError(f"version {data.get('version')!r} of the command stream is not known; wanted {VERSION}")
        if set(data) != {"format", "version", "inputs", "records"}:
            raise StreamError(f"a command stream has format, version, inputs and records, not {', '.join(sorted(data))}")
        inputs, records = data["inputs"], data["records"]
        if not isinstance(inputs, dict) or not isinstance(records, list):
            raise StreamError("inputs must be an object and records an array")
        decoded: dict[str, bytes] = {}
        for name, text in inputs.items():
            try:
                decoded[name] = base64.b64decode(text, validate=True)
            except (binascii.Error, TypeError, ValueError):
                raise StreamError(f"input {name!r} is not base64 text") from None
        if (total := sum(map(len, decoded.values()))) > MAX_INPUT_BYTES:
            raise StreamError(f"the inputs hold {total} bytes; a stream may carry at most {MAX_INPUT_BYTES}")
        stream = cls(inputs=decoded)
        for index, item in enumerate(records):
            try:
                stream.append(record_from_dict(item))
            except StreamError as error:
                raise StreamError(f"record {index}: {error}") from None
        return stream

    def save(self, path: str | Path) -> None:
        """Write the stream to ``path`` as JSON."""
        Path(path).write_text(json.dumps(self.to_dict(), separators=(",", ":"), allow_nan=False), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> CommandStream:
        """Read a stream. Raises `StreamError` when the file is not one, OSError when it cannot be read."""
        try:
            data = json.loads(Path(path).read_bytes())
        except (ValueError, RecursionError) as error:
            raise StreamError(f"{path} is not JSON: {error}") from None
        return cls.from_dict(data)
