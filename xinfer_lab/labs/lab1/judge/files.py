"""Lab 1: which ranges of a safetensors file are sound, and which bytes belong to which layer."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

from xinfer_lab.grading.values import Value
from xinfer_lab.grading.verify_values import Judge, Refuses, WrongModel
from xinfer_lab.labs.lab1.judge.refusals import Inputs, any_answer, refuses

__all__ = ["LAYERS", "RANGES", "REFUSE_RANGES"]

Range = tuple[int, int]
ITEM = {"F32": 4, "F16": 2, "BF16": 2}
MORE = {"F64": 8, "F8_E4M3": 1, "bf16": 2}
"""What a longer table might have."""


def _fault(header: Mapping[str, Any], start: int, size: int, ignore: str = "") -> str | None:
    """Why the header must be refused, or None; ``ignore`` leaves out one rule, as a wrong answer would."""
    taken: list[tuple[int, int, str]] = []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        known = {**ITEM, **MORE} if ignore == "more" else ITEM
        if entry["dtype"] not in known:
            if ignore == "dtype":
                continue
            return f"{name} has the dtype {entry['dtype']}, which the table does not have"
        if not 0 <= begin <= end and ignore != "order":
            return f"the range of {name} is [{begin}, {end}]"
        looked_at = ignore != "size" and (ignore != "last" or name == list(header)[-1])
        if (0 if ignore == "start" else start) + end > size and looked_at:
            return f"{name} ends at byte {start + end:,} of a file of {size:,}"
        count = sum(entry["shape"]) if ignore == "product" else math.prod(entry["shape"])
        needed = count * known[entry["dtype"]]
        if ignore == "wrap":
            needed = (needed + 2**63) % 2**64 - 2**63
        ignored = ignore == "shape" or (ignore == "scalar" and not entry["shape"]) or (ignore == "empty" and not count)
        equal = float(end - begin) == float(needed) if ignore == "float" else end - begin == needed
        if not equal and not ignored:
            return f"{name} needs {needed:,} bytes, and its range has {end - begin:,}"
        taken.append((begin, end, name))
    taken.sort()
    for (low, end, first), (begin, high, second) in pairwise(taken):
        if ignore == "twins" and (low, end) == (begin, high):
            continue
        if (begin < end and ignore != "overlap") or (begin == end and ignore == "touch"):
            return f"{first} and {second} share bytes"
        if begin > end and ignore == "holes":
            return f"there are bytes between {first} and {second}"
    return None


def _ranges(
    inputs: Inputs, shift: Callable[[Inputs], int] = lambda inputs: inputs["data_start"], ignore: str = ""
) -> Value:
    fault = _fault(inputs["header"], inputs["data_start"], inputs["file_size"], ignore)
    if fault:
        return refuses(fault)
    moved = shift(inputs)
    return {
        name: tuple(moved + place for place in entry["data_offsets"])
        for name, entry in inputs["header"].items()
        if name != "__metadata__"
    }


def _length_for_end(inputs: Inputs) -> Value:
    truth = _ranges(inputs)
    return truth if isinstance(truth, Refuses) else {name: (begin, end - begin) for name, (begin, end) in truth.items()}


def _last_byte(inputs: Inputs) -> Value:
    truth = _ranges(inputs)
    return truth if isinstance(truth, Refuses) else {name: (begin, end - 1) for name, (begin, end) in truth.items()}


def _without_rule(rule: str) -> Callable[[Inputs], Value]:
    """Accepts what breaks ``rule`` alone, refuses what the other rules refuse."""
    return lambda inputs: (
        refuses("") if _fault(inputs["header"], inputs["data_start"], inputs["file_size"], rule) else _right(inputs)
    )


def _right(inputs: Inputs) -> Value:
    """The ranges, whether they are sound or not."""
    return {
        name: tuple(inputs["data_start"] + place for place in entry["data_offsets"])
        for name, entry in inputs["header"].items()
        if name != "__metadata__"
    }


def _metadata_kept(inputs: Inputs) -> Value:
    return Refuses("KeyError", "", also=("KeyError",)) if "__metadata__" in inputs["header"] else _ranges(inputs)


TOO_STRICT = (
    WrongModel(
        "__metadata__ is taken for a tensor",
        'It has no dtype and no offsets: skip the entry of the name "__metadata__".',
        _metadata_kept,
        rule="metadata",
    ),
    WrongModel(
        "Ranges that touch are taken for an overlap",
        "An end is the byte after the last one, so the next range may begin there: refuse begin < end, not <=.",
        _without_rule("touch"),
        rule="touching",
    ),
    WrongModel(
        "The numbers of the shape are added up",
        "A tensor has the product of its shape's numbers: math.prod(shape).",
        _without_rule("product"),
        rule="product",
    ),
    WrongModel(
        "Holes are refused",
        "Bytes that belong to no tensor are fine; only a byte that belongs to two is not.",
        _without_rule("holes"),
        rule="holes",
    ),
)


OVERFLOWS = WrongModel(
    "The product is counted in 64 bits",
    "A product of sizes may need more than 64 bits: Python's own numbers and math.prod have room, NumPy's wrap around.",
    _without_rule("wrap"),
    rule="product",
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
            rule="from_the_file",
        ),
        WrongModel(
            "The 8 bytes of the length are added again",
            "data_start already counts them.",
            lambda inputs: _ranges(inputs, lambda case: case["data_start"] + 8),
            rule="from_the_file",
        ),
        WrongModel(
            "A length in place of the end",
            "The second number is the byte after the last one.",
            _length_for_end,
            rule="end",
        ),
        WrongModel(
            "The end is the last byte",
            "The second number is the byte after the last one, as in a slice.",
            _last_byte,
            rule="end",
        ),
        *TOO_STRICT[:3],
        OVERFLOWS,
    ),
    besides=("keeps_inputs",),
)

REFUSE_RANGES = Judge(
    truth=_ranges,
    passed="Ranges that lie outside of the file, do not fit their tensor or overlap are refused.",
    noun="dict of ranges",
    call=lambda case: f"tensor_ranges of {case.label}",
    compare=any_answer,
    wrong=(
        WrongModel(
            "Overlaps are not looked for",
            "Two tensors may not share a byte; sorted by begin, neighbours tell.",
            _without_rule("overlap"),
            rule="shares",
        ),
        WrongModel(
            "The file's size is not looked at",
            "data_start + end may not lie beyond file_size.",
            _without_rule("size"),
            rule="inside",
        ),
        WrongModel(
            "data_start is missing in the comparison with the file's size",
            "Offsets count from data_start: compare data_start + end with file_size.",
            _without_rule("start"),
            rule="inside",
        ),
        WrongModel(
            "A single number's range is not looked at",
            "The shape [] has one element, the product of no numbers: math.prod([]) is 1.",
            _without_rule("scalar"),
            rule="scalar",
        ),
        WrongModel(
            "The shape is not looked at",
            "The range must have as many bytes as shape and dtype need.",
            _without_rule("shape"),
            rule="fits",
        ),
        WrongModel(
            "An unknown dtype is let through",
            "What the table does not have is refused.",
            _without_rule("dtype"),
            rule="dtype",
        ),
        WrongModel(
            "The table has more dtypes than BYTES",
            "BYTES is the whole table: F64 is refused, and so is bf16 in small letters.",
            _without_rule("more"),
            rule="dtype",
        ),
        WrongModel("A begin below 0 is let through", "0 <= begin <= end.", _without_rule("order"), rule="order"),
        WrongModel(
            "Only the last tensor is held against the file's size",
            "Names have no order that the bytes follow: every tensor has to end inside of the file.",
            _without_rule("last"),
            rule="inside",
        ),
        WrongModel(
            "Two tensors may have the same range",
            "Two tensors of the very same range share all their bytes.",
            _without_rule("twins"),
            rule="shares",
        ),
        WrongModel(
            "The range of a tensor without elements is not looked at",
            "The product of [0, 5] is 0: its range must have 0 bytes.",
            _without_rule("empty"),
            rule="fits",
        ),
        WrongModel(
            "Bytes are compared as floats",
            "Above 2**53 a float does not tell a number from the next: compare whole numbers, without /.",
            _without_rule("float"),
            rule="fits",
        ),
        OVERFLOWS,
        *TOO_STRICT,
    ),
    besides=("keeps_inputs", "refuses"),
)


def _layer_of(name: str) -> Value:
    words = name.split(".")
    return int(words[2]) if words[:2] == ["model", "layers"] else "rest"


def _first_digit(name: str) -> Value:
    layer = _layer_of(name)
    return layer if layer == "rest" else int(str(layer)[0])


def _any_number(name: str) -> Value:
    numbers = re.findall(r"\d+", name)
    return int(numbers[0]) if numbers else "rest"


def _layers_anywhere(name: str) -> Value:
    found = re.search(r"layers\.(\d+)\.", name)
    return int(found[1]) if found else "rest"


def _table(
    inputs: Inputs,
    layer_of: Callable[[str], Value] = _layer_of,
    merge: Callable[[list[Range]], Value] | None = None,
    order: Callable[[tuple[str, Range]], Any] | None = lambda item: item[1],
) -> Value:
    merge = merge or _merged
    groups: dict[Value, list[Range]] = {}
    for name, place in sorted(inputs["ranges"].items(), key=order):
        groups.setdefault(layer_of(name), []).append(tuple(place))
    return {layer: merge(places) for layer, places in groups.items()}


def _merged(places: Iterable[Range]) -> list[Range]:
    runs: list[Range] = []
    for begin, end in places:
        if runs and runs[-1][1] == begin:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((begin, end))
    return runs


def _no_rest(inputs: Inputs) -> Value:
    return {layer: runs for layer, runs in _table(inputs).items() if layer != "rest"}


def _text_keys(inputs: Inputs) -> Value:
    return {str(layer): runs for layer, runs in _table(inputs).items()}


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
            rule="whole_number",
        ),
        WrongModel(
            "Touching ranges are not joined",
            "Where one range ends and the next begins, they are one run.",
            lambda inputs: _table(inputs, merge=lambda places: places),
            rule="joined",
        ),
        WrongModel(
            "Holes are swallowed",
            "Bytes between two ranges belong to nobody; join only ranges that touch.",
            lambda inputs: _table(inputs, merge=lambda places: [(places[0][0], places[-1][1])]),
            rule="apart",
        ),
        WrongModel(
            "The rest is missing", 'Embedding, final norm and head go under the key "rest".', _no_rest, rule="rest"
        ),
        WrongModel("The layers' numbers are text", "A layer's key is an int: 3, not '3'.", _text_keys, rule="int_keys"),
        WrongModel(
            "Any number in a name is taken for a layer",
            "A layer's tensors are called \"model.layers.{i}.<more>\". A number elsewhere in a name is no layer's.",
            lambda inputs: _table(inputs, _any_number),
            rule="only_layers",
        ),
        WrongModel(
            '"layers." anywhere in a name is taken for a layer',
            'A layer\'s tensors begin with "model.layers.": other parts of a model may have layers of their own.',
            lambda inputs: _table(inputs, _layers_anywhere),
            rule="only_layers",
        ),
        WrongModel(
            "Ranges stay in the order of the dict",
            "Sort them by their begin before you join them.",
            lambda inputs: _table(inputs, order=lambda item: 0),
            rule="sorted",
        ),
        WrongModel(
            "Ranges are sorted by their tensors' names",
            "The order of names need not be that of the bytes: sort by begin.",
            lambda inputs: _table(inputs, order=lambda item: item[0]),
            rule="sorted",
        ),
    ),
    besides=("keeps_inputs",),
)
