"""The cases of Lab 1 about files: headers of safetensors files, ranges, names of tensors."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from xinfer_lab.grading.piece import Case

__all__ = ["LONGEST_HEADER", "good_headers", "good_ranges", "hostile_headers", "hostile_ranges", "layer_names"]

LONGEST_HEADER = 100_000_000
"""Bytes. A longer header is refused, as the safetensors library does."""

ITEM_BYTES = {"F32": 4, "F16": 2, "BF16": 2}
PARTS = (
    "input_layernorm.weight",
    "mlp.down_proj.weight",
    "mlp.gate_proj.weight",
    "mlp.up_proj.weight",
    "post_attention_layernorm.weight",
    "self_attn.k_proj.bias",
    "self_attn.k_proj.weight",
    "self_attn.o_proj.weight",
    "self_attn.q_proj.bias",
    "self_attn.q_proj.weight",
    "self_attn.v_proj.bias",
    "self_attn.v_proj.weight",
)


ODD_NAMES = (
    "model.layers.3.mlp.experts.7.up_proj.weight",
    "model.vision.layers.4.weight",
    "submodel.layers.5.weight",
    "model.positions.2.weight",
    "lm_head.6.scale",
)
"""Names with numbers: the first belongs to layer 3, the others to no layer."""


def _tensors(random: Random, layers: int) -> list[tuple[str, str, list[int]]]:
    dtype, hidden, wide = random.choice(("BF16", "F16", "F32")), random.choice((8, 12, 16)), random.choice((20, 32))
    shapes = {"down": [hidden, wide], "gate": [wide, hidden], "up": [wide, hidden]}
    tensors = [("lm_head.weight", dtype, [40, hidden]), ("model.embed_tokens.weight", dtype, [40, hidden])]
    for layer in sorted(range(layers), key=str):
        for part in PARTS:
            shape = (
                [hidden] if "norm" in part or "bias" in part else shapes.get(part[4:].split("_")[0], [hidden, hidden])
            )
            tensors.append((f"model.layers.{layer}.{part}", dtype, shape))
    return [*tensors, ("model.norm.weight", "F32", [hidden]), ("scale", "F32", [])]


def _header(tensors: list[tuple[str, str, list[int]]], metadata: bool = True) -> tuple[dict[str, Any], int]:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}} if metadata else {}
    end = 0
    for name, dtype, shape in tensors:
        begin, size = end, ITEM_BYTES[dtype]
        for length in shape:
            size *= length
        end = begin + size
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    return header, end


def _file(header: Any, data: int, *, claimed: int | None = None, text: bytes | None = None) -> dict[str, Any]:
    text = _compact(header) if text is None else text
    text += b" " * (-len(text) % 8)
    return {"claimed": len(text) if claimed is None else claimed, "text": text, "size": 8 + len(text) + data}


def _compact(header: Any) -> bytes:
    return json.dumps(header, separators=(",", ":")).encode()


def good_headers(random: Random) -> list[Case]:
    """Headers as safetensors writes them, of files from a few KB to many GB; one longer than 64 KiB, one of no tensors,
    one with names and words that ASCII and Python do not have."""
    few, end = _header(_tensors(random, 2))
    many, _ = _header(_tensors(random, random.randint(60, 80)))
    plain, plain_end = _header(_tensors(random, 1), metadata=False)
    foreign, foreign_end = _header([("gewicht_ü", "F32", [3]), ("重み", "BF16", [random.randint(2, 9)])])
    unescaped = json.dumps(foreign, ensure_ascii=False).encode()
    words, words_end = _header(_tensors(random, 1))
    words["__metadata__"] |= {"checked": True, "origin": None}
    return [
        Case("a file without tensors", {"file": _file({}, random.randint(0, 99))}),
        Case("a file with names that are not ASCII", {"file": _file(None, foreign_end, text=unescaped)}),
        Case("a file with true and null in __metadata__", {"file": _file(words, words_end)}),
        Case("a file of a few KB", {"file": _file(few, end)}),
        Case("a file of many GB with a long header", {"file": _file(many, random.randint(5, 60) * 10**9)}),
        Case("a file without __metadata__", {"file": _file(plain, plain_end)}),
    ]


def hostile_headers(random: Random) -> list[Case]:
    """Files that are no safetensors files, each for one reason, among good ones, in no order."""
    header, end = _header(_tensors(random, 1))
    good = _file(header, end)
    text, size = good["text"], good["size"]
    one_short = {"claimed": len(text) + 1, "text": text, "size": 8 + len(text)}
    longest = {**good, "claimed": LONGEST_HEADER, "spaces": LONGEST_HEADER - len(text), "size": 9 * 10**9}
    pickle = b"\x80\x04\x95" + random.randbytes(40)
    cases = [
        ("a sound file", good),
        ("a length of 2**60", {**good, "claimed": 2**60 + random.randrange(2**30)}),
        ("a header longer than its file", {**good, "claimed": size - 8 + random.randint(9, 999)}),
        ("a complete header, but a length of one byte more than the file has", one_short),
        ("a header of more than 100,000,000 bytes", {**good, "claimed": LONGEST_HEADER + 1, "size": 9 * 10**9}),
        ("a sound file whose header, spaces included, has exactly 100,000,000 bytes", longest),
        ("a file of 7 bytes", {"claimed": 3, "text": b"", "size": 7}),
        ("a file of 1 byte", {"claimed": 0, "text": b"", "size": 1}),
        ("an empty file", {"claimed": 0, "text": b"", "size": 0}),
        ("a length of 0 in a file of 8 bytes", {"claimed": 0, "text": b"", "size": 8}),
        ("a length of 0", {**good, "claimed": 0}),
        ("a length of 2**63 and more", {**good, "claimed": 2**63 + random.choice((0, len(text), 2**63 - 8))}),
        *(
            (
                f"a length of 2**{8 * place} and as much as a sound header has",
                {**good, "claimed": 2 ** (8 * place) + len(text)},
            )
            for place in (4, 5, 6, 7)
        ),
        ("a sound header with another JSON object behind it", _file(None, end, text=_compact(header) + b"{}")),
        ("a sound header with zeros behind it", _file(None, end, text=_compact(header) + bytes(random.randint(1, 8)))),
        ("a header in Python's words, not in JSON's", _file(None, end, text=repr(header).encode())),
        (
            "a sound header but for a byte that UTF-8 does not have",
            _file(None, end, text=text.replace(b"pt", b"p\xff")),
        ),
        ("a header cut short", _file(None, end, text=text[: len(text) // 2])),
        ("a header that is a JSON list", _file([header], end)),
        ("a header that is a JSON number", _file(random.randint(1, 99), end)),
        ("a pickle", _file(None, end, text=pickle)),
        ("a sound file that ends with its header", {**good, "size": 8 + len(text)}),
        ("another sound file, of 40 GB", {**good, "size": 40 * 10**9}),
        ("a sound file of more than 2**64 bytes", {**good, "size": 2**65 + random.randrange(2**60)}),
    ]
    random.shuffle(cases)
    return [Case(label, {"file": file}) for label, file in cases]


def _ranges_case(label: str, header: dict[str, Any], random: Random, end: int, slack: int = 0) -> Case:
    start = 8 * random.randint(20, 9000)
    return Case(label, {"header": header, "data_start": start, "file_size": start + end + slack})


def _small_ranges(random: Random) -> list[Case]:
    """Sound headers in which nothing touches, and in which no shape has a product: they tell two wrong ideas apart."""
    length, width = random.randint(3, 9), random.randint(3, 9)
    single, single_end = _header([("w", "BF16", [length, width])])
    flat, flat_end = _header([("a", "F16", [length]), ("b", "F32", [width])])
    return [
        _ranges_case("a header of a single tensor", single, random, single_end),
        _ranges_case("a header of two tensors of one dimension", flat, random, flat_end),
    ]


def _wide(end: int) -> dict[str, Any]:
    """A tensor of 2**66 bytes from ``end`` on: more than any integer of 64 bits counts."""
    return {"dtype": "BF16", "shape": [2**33, 2**32], "data_offsets": [end, end + 2**66]}


def good_ranges(random: Random) -> list[Case]:
    """Headers whose ranges are sound: with metadata, without, with names out of order of their offsets; of a single
    tensor, and of tensors of one dimension; one of a file that no integer of 64 bits counts."""
    first, first_end = _header(_tensors(random, 2))
    second, second_end = _header(_tensors(random, 1), metadata=False)
    names = list(first)
    random.shuffle(names)
    wide, wide_end = _header(_tensors(random, 1))
    wide["wide"] = _wide(wide_end)
    return [
        _ranges_case("a header with a tensor of 2**66 bytes", wide, random, wide_end + 2**66),
        _ranges_case("a header with __metadata__", first, random, first_end),
        _ranges_case("a header without __metadata__", second, random, second_end),
        _ranges_case("the first header in another order", {name: first[name] for name in names}, random, first_end),
        *_small_ranges(random),
    ]


def hostile_ranges(random: Random) -> list[Case]:
    """Headers that would read outside of the file, or give two tensors the same bytes, each for one reason; among sound
    ones, in no order."""

    def damaged(label: str, damage: Any, slack: int = 0) -> Case:
        header, end = _header(_tensors(random, 1))
        if damage is first_outside:
            slack = header["lm_head.weight"]["data_offsets"][1] - 1
        names = [name for name in header if name.startswith("model.layers.0.mlp")]
        damage(header, header[random.choice(names)], end)
        return _ranges_case(label, header, random, end, slack)

    def before(header: Any, entry: Any, end: int) -> None:
        begin, stop = entry["data_offsets"]
        entry["data_offsets"] = [begin - stop, 0]

    def backwards(header: Any, entry: Any, end: int) -> None:
        entry["data_offsets"].reverse()

    def outside(header: Any, entry: Any, end: int) -> None:
        header["scale"]["data_offsets"] = [end - 2, end + 2]  # the last tensor, 2 bytes too far

    def far_outside(header: Any, entry: Any, end: int) -> None:
        wide = 10**6
        header["scale"] = {"dtype": "F32", "shape": [wide], "data_offsets": [end - 4, end - 4 + 4 * wide]}

    def scalar(header: Any, entry: Any, end: int) -> None:
        header["scale"]["data_offsets"] = [end - 4, end + 4]  # two numbers' bytes for one

    def too_long(header: Any, entry: Any, end: int) -> None:
        entry["shape"] = [*entry["shape"], 2]

    def unknown(header: Any, entry: Any, end: int) -> None:
        entry["dtype"] = "Q4_0"

    def another(dtype: str, size: int) -> Any:
        def damage(header: Any, entry: Any, end: int) -> None:
            header["scale"] = {"dtype": dtype, "shape": [3], "data_offsets": [end, end + 3 * size]}

        return damage

    def twins(header: Any, entry: Any, end: int) -> None:
        one, other = random.sample(("q_proj", "o_proj", "k_proj", "v_proj"), 2)
        place = header[f"model.layers.0.self_attn.{one}.weight"]["data_offsets"]
        header[f"model.layers.0.self_attn.{other}.weight"]["data_offsets"] = list(place)

    def first_outside(header: Any, entry: Any, end: int) -> None:
        first = header["lm_head.weight"]
        first["data_offsets"] = [place + end for place in first["data_offsets"]]

    def none_with_bytes(header: Any, entry: Any, end: int) -> None:
        header["nothing"] = {"dtype": "F32", "shape": [0, 5], "data_offsets": [end, end + 20]}

    def too_many(header: Any, entry: Any, end: int) -> None:
        header["wide"] = {"dtype": "F32", "shape": [2**32, 2**32], "data_offsets": [end, end]}

    def one_byte_more(header: Any, entry: Any, end: int) -> None:
        header["wide"] = _wide(end)
        header["wide"]["data_offsets"][1] += 1

    def wide_outside(header: Any, entry: Any, end: int) -> None:
        header["wide"] = _wide(end)

    def shared(header: Any, entry: Any, end: int) -> None:
        other = header["lm_head.weight"]
        other["data_offsets"] = [entry["data_offsets"][0] + 2, entry["data_offsets"][0] + 2 + other["data_offsets"][1]]

    sound, end = _header(_tensors(random, 1))
    holed, holed_end = _header(_tensors(random, 1))
    behind = holed[f"model.layers.0.{random.choice(PARTS)}"]["data_offsets"][0]
    for name, entry in holed.items():
        if name != "__metadata__" and entry["data_offsets"][0] >= behind:
            entry["data_offsets"] = [place + 64 for place in entry["data_offsets"]]
    early, early_end = _header(_tensors(random, 1))
    early["lm_head.weight"]["data_offsets"] = [place - 1 for place in early["lm_head.weight"]["data_offsets"]]
    close, close_end = _header([("a", "F16", [random.randint(9, 99)]), ("b", "F32", [random.randint(9, 99)])])
    close["b"]["data_offsets"] = [place - 2 for place in close["b"]["data_offsets"]]
    empty, empty_end = _header([*_tensors(random, 1), ("nothing", "F32", [0, random.randint(2, 9)])])
    cases = [
        _ranges_case("a sound header", sound, random, end),
        damaged("two tensors of the very same range", twins),
        damaged("the first tensor one byte outside of the file, the others inside", first_outside),
        damaged("a tensor of no elements with bytes", none_with_bytes, slack=64),
        damaged("a tensor of 2**64 elements without bytes", too_many, slack=64),
        damaged("a tensor of 2**66 bytes whose range has one byte more", one_byte_more, slack=2**67),
        damaged("a tensor of 2**66 bytes, one byte outside of the file", wide_outside, slack=2**66 - 1),
        damaged("a dtype of 8 bytes that the table does not have", another("F64", 8), slack=64),
        damaged("a dtype of 1 byte that the table does not have", another("F8_E4M3", 1), slack=64),
        damaged("a dtype in small letters", another("bf16", 2), slack=64),
        damaged("a range that begins before the data", before),
        damaged("a range whose end lies before its begin", backwards),
        damaged("a range that ends outside of the file", outside),
        damaged("a range that ends a megabyte outside of the file", far_outside),
        damaged("a shape that needs more bytes than its range", too_long),
        damaged("a single number, shape [], with the bytes of two", scalar, slack=100),
        damaged("a dtype that the table does not have", unknown),
        _ranges_case("a range that begins one byte before the data", early, random, early_end),
        damaged("two tensors that share bytes", shared, slack=100_000),
        _ranges_case("two tensors of which the second begins two bytes too early", close, random, close_end - 2),
        _ranges_case("a sound header with bytes left over behind it", sound, random, end, slack=4096),
        _ranges_case("a sound header with a hole between its tensors", holed, random, holed_end + 64, slack=8),
        _ranges_case("a sound header with a tensor of no elements", empty, random, empty_end),
        *_small_ranges(random),
    ]
    random.shuffle(cases)
    return cases


def layer_names(random: Random) -> list[Case]:
    """Ranges by tensor name: layers of one, two and three digits, in one run of bytes or in several; with names in the
    order of the bytes, and not; and names with other numbers in them."""
    cases = []
    for label, layers, holes, mixed in (
        ("12 layers, each in one run", 12, False, False),
        ("126 layers with holes", 126, True, False),
        ("11 layers whose tensors are not in the order of their names", 11, False, True),
    ):
        start, ranges = 8 * random.randint(50, 5000), []
        tensors = [*_tensors(random, layers), *((name, "F32", [1]) for name in ODD_NAMES)]
        if mixed:
            tensors.sort(key=lambda tensor: (tensor[0].split(".")[:3], random.random()))
        for name, _, _ in tensors:
            size = 2 * random.randint(8, 4000)
            start += 256 if holes and random.random() < 0.2 else 0
            ranges.append((name, (start, start + size)))
            start += size
        random.shuffle(ranges)
        cases.append(Case(label, {"ranges": dict(ranges)}))
    return cases
