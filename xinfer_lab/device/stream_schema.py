"""The JSON Schema of command streams, derived from the record types."""

from __future__ import annotations

import dataclasses
import functools
import typing
from typing import Any

from xinfer_lab.device.records import DTYPE_BYTES, HEAPS, MAX_NAME, MAX_TEXT, RECORD_TYPES, Source, Span, View

__all__ = ["FORMAT", "MAX_INPUT_BYTES", "VERSION", "field_types", "record_schema", "stream_schema"]

FORMAT, VERSION = "xinfer-lab command stream", 1
MAX_INPUT_BYTES = 2**24
"""Inputs (token ids and the like) of one stream, together, in bytes: a stream is no way to carry weights."""

_LIMIT = 2**53
"""No number is larger: beyond it, JSON readers disagree about whole numbers."""

_COUNT = {"type": "integer", "minimum": 0, "maximum": _LIMIT}
_NAME = {"type": "string", "minLength": 1, "maxLength": MAX_NAME}
_TEXT = {"type": "string", "maxLength": MAX_TEXT}
# Patterns end with (?!.|\n) instead of $, which in Python lets a last line break pass.
_BASE64 = {
    "type": "string",
    "pattern": r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?(?!.|\n)",
    "maxLength": -(-MAX_INPUT_BYTES // 3) * 4,
}


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
_SCALAR = {
    "type": ["integer", "number", "string", "boolean", "null"],
    "maxLength": MAX_NAME,
    "minimum": -_LIMIT,
    "maximum": _LIMIT,
}


def _map(values: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "propertyNames": _NAME, "additionalProperties": values, "maxProperties": 64}


_BY_TYPE: dict[Any, dict[str, Any]] = {
    int: _COUNT,
    bool: {"type": "boolean"},
    Span: _SPAN,
    Source: _SOURCE,
    dict[str, View]: _map(_VIEW),
    "params": _map(_SCALAR),
}
_BY_NAME: dict[str, dict[str, Any]] = {
    "heap": {"enum": list(HEAPS)},
    "where": _TEXT,
    "label": _TEXT,
    "digest": {"type": "string", "pattern": r"^([0-9a-f]{32})?(?!.|\n)"},
}


@functools.cache
def field_types(op: str) -> dict[str, Any]:
    """The type of each field of a record of kind ``op``."""
    kind = RECORD_TYPES[op]
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _field_schema(name: str, hint: Any) -> dict[str, Any]:
    if name in _BY_NAME:
        return _BY_NAME[name]
    if hint is str:
        return _NAME
    return _BY_TYPE["params" if name == "params" else hint]


def record_schema(op: str) -> dict[str, Any]:
    """The JSON Schema of one record of kind ``op``."""
    fields = {name: _field_schema(name, hint) for name, hint in field_types(op).items()}
    return _object({"op": {"const": op}, **fields})


def stream_schema() -> dict[str, Any]:
    """The JSON Schema (draft 7) of a saved command stream."""
    schema = _object(
        {
            "format": {"const": FORMAT},
            "version": {"const": VERSION},
            "inputs": {"type": "object", "propertyNames": _NAME, "additionalProperties": _BASE64},
            "records": {"type": "array", "items": {"oneOf": [record_schema(op) for op in RECORD_TYPES]}},
        }
    )
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": FORMAT, **schema}
