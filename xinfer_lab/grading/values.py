"""Writes values of a student's program as JSON, and reads them back on the trusted side without trusting them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xinfer_lab.grading.numbers import plain_scalar

__all__ = ["BadData", "Opaque", "Value", "decode", "encode", "shown"]

MAX_NODES = 200_000
MAX_DEPTH = 24
MAX_TEXT = 1_000_000
MAX_INT_BITS = 4096

Value = Any
"""What `decode` returns: None, bool, int, float, str, bytes, list, dict, `Opaque`, and nothing else."""


class BadData(ValueError):
    """Recorded data that does not follow the schema; the message says where."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something that a recording does not carry: its type's name, and the beginning of its ``repr``."""

    type: str
    text: str


def encode(value: object) -> Any:
    """``value`` as JSON-able data. A tuple becomes a list, a memoryview bytes, a number of any library an int or a
    float (see `plain_scalar`); what has no form here becomes an `Opaque`.

    Runs in the student's process and calls nothing of the value but what `plain_scalar` does, iteration and ``repr``.
    """
    return _encode(value, 0, [MAX_NODES])


def _encode(value: object, depth: int, left: list[int]) -> Any:
    left[0] -= 1
    if left[0] < 0 or depth > MAX_DEPTH:
        return _opaque(value)
    match value:
        case None:
            return None
        case str() if len(value) <= MAX_TEXT:
            return str(value)
        case bytes() | bytearray() | memoryview() if 2 * memoryview(value).nbytes <= MAX_TEXT:
            return {"$": "bytes", "hex": bytes(value).hex()}
        case list() | tuple() if len(value) <= left[0]:
            return [_encode(item, depth + 1, left) for item in value]
        case dict() if 2 * len(value) <= left[0]:
            pairs = [[_encode(k, depth + 1, left), _encode(v, depth + 1, left)] for k, v in value.items()]
            return {"$": "dict", "items": pairs}
    return _encode_scalar(value)


def _encode_scalar(value: object) -> Any:
    match plain_scalar(value):
        case bool(truth):
            return truth
        case int(number) if number.bit_length() <= 63:
            return number
        case int(number) if number.bit_length() <= MAX_INT_BITS:
            return {"$": "int", "hex": hex(number)}
        case float(real):
            return real if math.isfinite(real) else {"$": "float", "text": repr(real)}
    return _opaque(value)


def _opaque(value: object) -> dict[str, str]:
    kind = type(value)
    try:
        text = repr(value)[:200]
    except Exception as error:
        text = f"<repr failed with {type(error).__name__}>"
    return {"$": "object", "type": f"{kind.__module__}.{kind.__qualname__}"[:200], "text": text}


def decode(data: object) -> Value:
    """The value that ``data`` stands for. Raises `BadData` where ``data`` is not something that `encode` writes."""
    return _decode(data, 0, [4 * MAX_NODES])


def _decode(data: object, depth: int, left: list[int]) -> Value:
    left[0] -= 1
    if left[0] < 0 or depth > MAX_DEPTH + 1:  # the deepest level is an `Opaque` that stands for the rest
        raise BadData(f"more than {4 * MAX_NODES} values, or nested deeper than {MAX_DEPTH}")
    kind = type(data)
    if data is None or kind is bool:
        return data
    if kind is int:
        if data.bit_length() > 63:  # type: ignore[attr-defined]
            raise BadData("a plain integer of more than 63 bits")
        return data
    if kind is float:
        if not math.isfinite(data):  # type: ignore[arg-type]
            raise BadData("a plain number that is not finite")
        return data
    if kind is str:
        if len(data) > MAX_TEXT:  # type: ignore[arg-type]
            raise BadData(f"a text of more than {MAX_TEXT} characters")
        return data
    if kind is list:
        return [_decode(item, depth + 1, left) for item in data]  # type: ignore[attr-defined]
    if kind is dict:
        return _decode_tagged(data, depth, left)  # type: ignore[arg-type]
    raise BadData(f"a value of type {kind.__name__}")


def _decode_tagged(data: Mapping[object, object], depth: int, left: list[int]) -> Value:
    tag, fields = data.get("$"), {key: item for key, item in data.items() if key != "$"}
    match tag, fields:
        case "int", {"hex": str(text), **rest} if not rest and len(text) <= MAX_INT_BITS // 4 + 8:
            return _number(int, text, 16)
        case "float", {"text": "nan" | "inf" | "-inf" as text, **rest} if not rest:
            return float(text)
        case "bytes", {"hex": str(text), **rest} if not rest and len(text) <= MAX_TEXT:
            return _number(bytes.fromhex, text)
        case "object", {"type": str(kind), "text": str(text), **rest} if not rest:
            return Opaque(kind[:200], text[:200])
        case "dict", {"items": list(items), **rest} if not rest:
            return dict(_decode_pair(pair, depth, left) for pair in items)
    raise BadData(f"an object with the unknown tag {str(tag)[:40]!r} or unfitting fields")


def _decode_pair(pair: object, depth: int, left: list[int]) -> tuple[Value, Value]:
    if type(pair) is not list or len(pair) != 2:
        raise BadData("an entry of a dict that is no pair")
    key = _decode(pair[0], depth + 1, left)
    if isinstance(key, list | dict):
        raise BadData("a dict's key that is a list or a dict")
    return key, _decode(pair[1], depth + 1, left)


def _number(read: Any, *arguments: Any) -> Value:
    try:
        return read(*arguments)
    except ValueError as error:
        raise BadData(f"digits that cannot be read: {error}") from None


def shown(value: Value, limit: int = 300) -> str:
    """``value`` for people: an integer with thousands separators, an `Opaque` by its type, all cut at ``limit``
    characters."""
    text = f"{value:,}" if type(value) is int and value.bit_length() <= 256 else _shown(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _shown(value: Value) -> str:
    match value:
        case bool() | None:
            return repr(value)
        case int():
            return str(value) if value.bit_length() <= 256 else f"an integer of {value.bit_length():,} bits"
        case Opaque():
            return f"{value.text} (a {value.type.removeprefix('builtins.')})"
        case list():
            return "[" + ", ".join(_shown(item) for item in value[:40]) + (", …]" if len(value) > 40 else "]")
        case tuple():
            inside = ", ".join(_shown(item) for item in value[:40])
            return f"({inside}{', …' if len(value) > 40 else ',' if len(value) == 1 else ''})"
        case dict():
            pairs = [f"{_shown(key)}: {_shown(item)}" for key, item in list(value.items())[:40]]
            return "{" + ", ".join(pairs) + (", …}" if len(value) > 40 else "}")
    return repr(value)
