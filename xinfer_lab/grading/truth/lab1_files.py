"""Lab 1: what a safetensors header says, which ranges are sound, and which bytes belong to which layer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.values import Value
from xinfer_lab.grading.verify import Difference, Judge, Outcome, Refuses, WrongModel

__all__ = ["HEADER", "LAYERS", "RANGES", "REFUSE_HEADER", "REFUSE_RANGES"]

Inputs = Mapping[str, Value]
LONGEST = 100_000_000
ITEM = {"F32": 4, "F16": 2, "BF16": 2}


def _refuses(reason: str) -> Refuses:
    return Refuses("ValueError", reason)


def _header(inputs: Inputs) -> Value:
    file = inputs["file"]
    if file["size"] < 8:
        return _refuses("a file of fewer than 8 bytes has no length")
    if file["claimed"] > LONGEST:
        return _refuses(f"the header may be at most {LONGEST:,} bytes long, and this one says {file['claimed']:,}")
    if file["claimed"] > file["size"] - 8:
        return _refuses(f"a header of {file['claimed']:,} bytes does not fit a file of {file['size']:,}")
    try:
        header = json.loads(file["text"][: file["claimed"]])
    except (ValueError, RecursionError):
        return _refuses("the header is not JSON")
    if not isinstance(header, dict):
        return _refuses(f"the header must be a JSON object, and this is a {type(header).__name__}")
    return [header, 8 + file["claimed"]]


def _frugal(inputs: Inputs, outcome: Outcome) -> Difference | None:
    asked, allowed = outcome.observed.get("asked"), outcome.observed.get("allowed")
    if type(asked) is int and type(allowed) is int and asked > allowed:
        hint = "Check the length against the limit and the file's size before you read that many bytes."
        return Difference(
            "", f"at most {allowed:,} bytes read", f"{asked:,} bytes asked for", "It reads too much.", hint
        )
    return None


def _start(change: Callable[[int], int]) -> Callable[[Inputs], Value]:
    def model(inputs: Inputs) -> Value:
        truth = _header(inputs)
        return truth if isinstance(truth, Refuses) else [truth[0], change(truth[1])]

    return model


def _big_endian(inputs: Inputs) -> Value:
    return _refuses("the length, read with its bytes in the wrong order, is too large")


def _no_metadata(inputs: Inputs) -> Value:
    truth = _header(inputs)
    if isinstance(truth, Refuses):
        return truth
    return [{name: entry for name, entry in truth[0].items() if name != "__metadata__"}, truth[1]]


def _of_file(case: Case) -> str:
    file = case.inputs["file"]
    return f"read_header of {case.label} ({file['size']:,} bytes; its first 8 say {file['claimed']:,})"


HEADER = Judge(
    truth=_header,
    passed="Headers read by hand, the data left alone.",
    noun="pair (header, data_start)",
    call=_of_file,
    also=_frugal,
    wrong=(
        WrongModel(
            "The 8 bytes of the length are forgotten",
            "The data begins behind the length and the header: 8 + n.",
            _start(lambda start: start - 8),
        ),
        WrongModel(
            "The data begins right behind the length",
            "The header lies between the length and the data.",
            _start(lambda start: 8),
        ),
        WrongModel(
            "data_start is counted from the length",
            "8 + n, counted from the file's first byte.",
            _start(lambda start: start + 8),
        ),
        WrongModel(
            "The bytes of the length are in the wrong order",
            "It is little-endian: the first byte is the smallest.",
            _big_endian,
        ),
        WrongModel(
            "__metadata__ is dropped",
            "This function returns the header as it is; the next one skips __metadata__.",
            _no_metadata,
        ),
    ),
)


def _any_answer(expected: Value, got: Value, noun: str) -> Difference | None:
    return None


def _accepts(*allowed: str) -> Callable[[Inputs], Value]:
    """Refuses as the truth does, except for reasons that contain one of ``allowed``."""

    def model(inputs: Inputs) -> Value:
        truth = _header(inputs)
        return None if isinstance(truth, Refuses) and any(part in truth.reason for part in allowed) else truth

    return model


REFUSE_HEADER = Judge(
    truth=_header,
    passed="Files that are no safetensors files are refused before they can do harm.",
    noun="header",
    call=_of_file,
    also=_frugal,
    compare=_any_answer,
    wrong=(
        WrongModel(
            "Any JSON will do",
            "The header must be a JSON object; a list or a number has no tensors.",
            _accepts("must be a JSON object"),
        ),
        WrongModel(
            "The limit of 100,000,000 bytes is missing",
            "A length above it is refused before reading.",
            _accepts("may be at most"),
        ),
        WrongModel(
            "The file's size is not looked at",
            "A header cannot be longer than what follows the first 8 bytes.",
            _accepts("does not fit"),
        ),
    ),
)


def _fault(header: Mapping[str, Any], start: int, size: int, ignore: str = "") -> str | None:
    """Why the header must be refused, or None; ``ignore`` leaves out one rule, as a wrong answer would."""
    taken: list[tuple[int, int, str]] = []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        if entry["dtype"] not in ITEM:
            if ignore == "dtype":
                continue
            return f"{name} has the dtype {entry['dtype']}, which the table does not have"
        if not 0 <= begin <= end and ignore != "order":
            return f"the range of {name} is [{begin}, {end}]"
        if start + end > size and ignore != "size":
            return f"{name} ends at byte {start + end:,} of a file of {size:,}"
        needed = math.prod(entry["shape"]) * ITEM[entry["dtype"]]
        if end - begin != needed and ignore != "shape":
            return f"{name} needs {needed:,} bytes, and its range has {end - begin:,}"
        taken.append((begin, end, name))
    taken.sort()
    for (_, end, first), (begin, _, second) in pairwise(taken):
        if begin < end and ignore != "overlap":
            return f"{first} and {second} share bytes"
    return None


def _ranges(
    inputs: Inputs, shift: Callable[[Inputs], int] = lambda inputs: inputs["data_start"], ignore: str = ""
) -> Value:
    fault = _fault(inputs["header"], inputs["data_start"], inputs["file_size"], ignore)
    if fault:
        return _refuses(fault)
    moved = shift(inputs)
    return {
        name: [moved + place for place in entry["data_offsets"]]
        for name, entry in inputs["header"].items()
        if name != "__metadata__"
    }


def _length_for_end(inputs: Inputs) -> Value:
    truth = _ranges(inputs)
    return truth if isinstance(truth, Refuses) else {name: [begin, end - begin] for name, (begin, end) in truth.items()}


def _last_byte(inputs: Inputs) -> Value:
    truth = _ranges(inputs)
    return truth if isinstance(truth, Refuses) else {name: [begin, end - 1] for name, (begin, end) in truth.items()}


def _without_rule(rule: str) -> Callable[[Inputs], Value]:
    return lambda inputs: (
        None if not _fault(inputs["header"], inputs["data_start"], inputs["file_size"], rule) else _ranges(inputs)
    )


RANGES = Judge(
    truth=_ranges,
    passed="Every tensor's place in the file.",
    noun="dict of ranges",
    call=lambda case: f"tensor_ranges of {case.label}",
    wrong=(
        WrongModel(
            "Offsets are taken from the file's start",
            "data_offsets count from data_start.",
            lambda inputs: _ranges(inputs, lambda _: 0),
        ),
        WrongModel(
            "The 8 bytes of the length are added again",
            "data_start already counts them.",
            lambda inputs: _ranges(inputs, lambda case: case["data_start"] + 8),
        ),
        WrongModel(
            "A length in place of the end", "The second number is the byte after the last one.", _length_for_end
        ),
        WrongModel(
            "The end is the last byte", "The second number is the byte after the last one, as in a slice.", _last_byte
        ),
    ),
)

REFUSE_RANGES = Judge(
    truth=_ranges,
    passed="Ranges that lie outside of the file, do not fit their tensor or overlap are refused.",
    noun="dict of ranges",
    call=lambda case: f"tensor_ranges of {case.label}",
    compare=_any_answer,
    wrong=(
        WrongModel(
            "Overlaps are not looked for",
            "Two tensors may not share a byte; sorted by begin, neighbours tell.",
            _without_rule("overlap"),
        ),
        WrongModel(
            "The file's size is not looked at", "data_start + end may not lie beyond file_size.", _without_rule("size")
        ),
        WrongModel(
            "The shape is not looked at",
            "The range must have as many bytes as shape and dtype need.",
            _without_rule("shape"),
        ),
        WrongModel(
            "An unknown dtype is let through", "What the table does not have is refused.", _without_rule("dtype")
        ),
        WrongModel("A begin below 0 is let through", "0 <= begin <= end.", _without_rule("order")),
    ),
)


def _layer_of(name: str) -> Value:
    words = name.split(".")
    return int(words[2]) if words[:2] == ["model", "layers"] else "rest"


def _first_digit(name: str) -> Value:
    layer = _layer_of(name)
    return layer if layer == "rest" else int(str(layer)[0])


def _table(
    inputs: Inputs,
    layer_of: Callable[[str], Value] = _layer_of,
    merge: Callable[[list[list[int]]], Value] | None = None,
) -> Value:
    groups: dict[Value, list[list[int]]] = {}
    for name, place in sorted(inputs["ranges"].items(), key=lambda item: item[1]):
        groups.setdefault(layer_of(name), []).append(list(place))
    return {layer: (merge or _merged)(places) for layer, places in groups.items()}


def _merged(places: Iterable[list[int]]) -> list[list[int]]:
    runs: list[list[int]] = []
    for begin, end in places:
        if runs and runs[-1][1] == begin:
            runs[-1][1] = end
        else:
            runs.append([begin, end])
    return runs


def _no_rest(inputs: Inputs) -> Value:
    return {layer: runs for layer, runs in _table(inputs).items() if layer != "rest"}


def _text_keys(inputs: Inputs) -> Value:
    return {str(layer): runs for layer, runs in _table(inputs).items()}


def _file_order(inputs: Inputs) -> Value:
    groups: dict[Value, list[list[int]]] = {}
    for name, place in inputs["ranges"].items():
        groups.setdefault(_layer_of(name), []).append(list(place))
    return {layer: _merged(places) for layer, places in groups.items()}


LAYERS = Judge(
    truth=_table,
    passed="Each layer's bytes in the file, in the fewest runs.",
    noun="table",
    call=lambda case: f"layer_table of {case.label}",
    wrong=(
        WrongModel(
            "Layer 1 swallows layers 10 to 12",
            "Compare the whole number, not how a name begins.",
            lambda inputs: _table(inputs, _first_digit),
        ),
        WrongModel(
            "Touching ranges are not joined",
            "Where one range ends and the next begins, they are one run.",
            lambda inputs: _table(inputs, merge=lambda places: places),
        ),
        WrongModel(
            "Holes are swallowed",
            "Bytes between two ranges belong to nobody; join only ranges that touch.",
            lambda inputs: _table(inputs, merge=lambda places: [[places[0][0], places[-1][1]]]),
        ),
        WrongModel("The rest is missing", 'Embedding, final norm and head go under the key "rest".', _no_rest),
        WrongModel("The layers' numbers are text", "A layer's key is an int: 3, not '3'.", _text_keys),
        WrongModel(
            "Ranges stay in the order of the dict", "Sort them by their begin before you join them.", _file_order
        ),
    ),
)
