"""The command stream: records in the order in which they were issued, plus the small inputs that they name.

It is data. It can be saved, loaded, drawn, analysed and replayed; it carries no weights. The JSON form is validated
against a schema that is derived from the record types, so nothing but plain records ever comes out of
`CommandStream.load`.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import functools
import json
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from xinfer_lab.device.errors import StreamError
from xinfer_lab.device.records import MAX_NAME, RECORD_TYPES, Record, Source, Span, View
from xinfer_lab.device.stream_schema import FORMAT, MAX_INPUT_BYTES, VERSION, field_types, record_schema, stream_schema

__all__ = ["MAX_INPUT_BYTES", "CommandStream", "record_from_dict", "record_to_dict", "stream_schema"]

_FIELDS: dict[type, tuple[str, ...]] = {
    kind: tuple(field.name for field in dataclasses.fields(kind))
    for kind in (*RECORD_TYPES.values(), Span, Source, View)
}


@functools.cache
def _validator(op: str) -> Callable[[Any], Any]:
    import fastjsonschema

    validate: Callable[[Any], Any] = fastjsonschema.compile(
        {"$schema": "http://json-schema.org/draft-07/schema#", **record_schema(op)}
    )
    return validate


def record_to_dict(record: Record) -> dict[str, Any]:
    """``record`` as JSON-ready data, with its ``op``."""
    data: dict[str, Any] = {"op": record.op}
    for name in _FIELDS[type(record)]:
        value = getattr(record, name)
        if isinstance(value, (Span, Source)):
            value = _flat(value)
        elif isinstance(value, dict):
            value = {
                key: {**_flat(one), "shape": list(one.shape)} if isinstance(one, View) else one
                for key, one in value.items()
            }
        data[name] = value
    return data


def _flat(value: Span | Source | View) -> dict[str, Any]:
    # By hand: a stream has thousands of these, and `dataclasses.asdict` copies every number in depth.
    return {name: getattr(value, name) for name in _FIELDS[type(value)]}


def _refuse_floats(op: str, data: Any, name: str = "record") -> None:
    # JSON Schema takes 4.0 for an integer; sizes and offsets here are Python ints and nothing else. NaN is no JSON.
    if isinstance(data, dict):
        for key, value in data.items():
            if isinstance(value, (dict, list, float)) and (name != "params" or value != value):
                _refuse_floats(op, value, key)
    elif isinstance(data, list):
        for value in data:
            if isinstance(value, (dict, list, float)):
                _refuse_floats(op, value, name)
    elif isinstance(data, float):
        wanted = "a number" if math.isnan(data) else "an integer"
        raise StreamError(f"a record of kind {op!r} does not fit the schema: {name} must be {wanted}, not {data!r}")


def record_from_dict(data: Any) -> Record:
    """The record that ``data`` says. Raises `StreamError` unless it fits the schema exactly."""
    import fastjsonschema

    op = data.get("op") if isinstance(data, dict) else None
    if not isinstance(op, str) or op not in RECORD_TYPES:
        raise StreamError(f"a record's op must be one of {', '.join(RECORD_TYPES)}, not {op!r}")
    try:
        _validator(op)(data)
    except fastjsonschema.JsonSchemaValueException as error:
        raise StreamError(f"a record of kind {op!r} does not fit the schema: {error.message}") from None
    _refuse_floats(op, data)
    values = {}
    for name, hint in field_types(op).items():
        value = data[name]
        if hint is Span or hint is Source:
            value = hint(**value)
        elif name == "operands":
            value = {key: View(**{**view, "shape": tuple(view["shape"])}) for key, view in value.items()}
        values[name] = value
    return RECORD_TYPES[op](**values)


def _decode_inputs(inputs: dict[Any, Any]) -> dict[str, bytes]:
    decoded: dict[str, bytes] = {}
    total = 0
    for name, text in inputs.items():
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
            raise StreamError(f"the name of an input has 1 to {MAX_NAME} characters, unlike {str(name)[:40]!r}")
        if not isinstance(text, str):
            raise StreamError(f"input {name!r} is not base64 text")
        # Before decoding, by its length: 4 characters for 3 bytes.
        total += len(text) // 4 * 3 - text[-2:].count("=")
        if total > MAX_INPUT_BYTES:
            raise StreamError(f"the inputs hold more than the {MAX_INPUT_BYTES} bytes that a stream may carry")
        try:
            decoded[name] = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise StreamError(f"input {name!r} is not base64 text") from None
    return decoded


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
        """A copy that lacks the records at ``indices``: what a program would issue that forgot those lines.

        Raises IndexError for an index that the stream does not have; negative ones count from the end.
        """
        gone = {range(len(self.records))[index] for index in indices}
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
        if type(data.get("version")) is not int or data["version"] != VERSION:
            raise StreamError(f"version {data.get('version')!r} of the command stream is not known; wanted {VERSION}")
        if set(data) != {"format", "version", "inputs", "records"}:
            raise StreamError(
                f"a command stream has format, version, inputs and records, not {', '.join(sorted(map(str, data)))}"
            )
        inputs, records = data["inputs"], data["records"]
        if not isinstance(inputs, dict) or not isinstance(records, list):
            raise StreamError("inputs must be an object and records an array")
        stream = cls(inputs=_decode_inputs(inputs))
        for index, item in enumerate(records):
            try:
                stream.append(record_from_dict(item))
            except StreamError as error:
                raise StreamError(f"record {index}: {error}") from None
        return stream

    def save(self, path: str | Path) -> None:
        """Write the stream to ``path`` as JSON. Raises `StreamError`, and writes nothing, if it could not be loaded."""
        data = self.to_dict()
        try:
            self.from_dict(data)
        except StreamError as error:
            raise StreamError(f"this stream cannot be saved: {error}") from None
        Path(path).write_text(json.dumps(data, separators=(",", ":")), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> CommandStream:
        """Read a stream. Raises `StreamError` when the file is not one, OSError when it cannot be read."""
        try:
            data = json.loads(Path(path).read_bytes())
        except (ValueError, RecursionError) as error:
            raise StreamError(f"{path} is not JSON: {error}") from None
        return cls.from_dict(data)
