"""The cases of Lab 1: configs as in published config.json files, headers of safetensors files, budgets."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from xinfer_lab.grading.piece import Case

__all__ = [
    "LONGEST_HEADER",
    "budgets",
    "config_cases",
    "config_json",
    "good_headers",
    "good_ranges",
    "hostile_headers",
    "hostile_ranges",
    "kv_cases",
    "layer_names",
    "model_cases",
    "too_small_budgets",
]

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


def config_json(name: str) -> dict[str, Any]:
    """The config.json of the published Qwen2.5 model ``name`` ("0.5b" to "72b"), with the keys that the published
    files have."""
    from xinfer_lab.qwen2 import PUBLISHED

    return _published_keys(PUBLISHED[name].to_dict())


def _published_keys(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in ("head_dim", "architectures", "layer_types")}


def _drawn_config(random: Random, dtype: str, tied: bool, grouped: bool) -> dict[str, Any]:
    kv = random.choice((2, 3, 4))
    heads = kv * random.choice((2, 3, 5)) if grouped else kv
    hidden = heads * random.choice((32, 64, 80, 128))
    return {
        **config_json("0.5b"),
        "hidden_size": hidden,
        "num_hidden_layers": random.randint(3, 90),
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "intermediate_size": random.randint(3 * hidden // 2, 5 * hidden),
        "vocab_size": random.randint(9_000, 160_000),
        "tie_word_embeddings": tied,
        "torch_dtype": dtype,
    }


def _configs(random: Random) -> list[tuple[str, dict[str, Any]]]:
    small, large = random.choice(("0.5b", "1.5b")), random.choice(("7b", "14b", "32b", "72b"))
    named = [(f"Qwen2.5-{name.upper()}", config_json(name)) for name in (small, large)]
    kinds = (("bfloat16", False, True), ("float32", True, True), ("float16", False, False), ("float32", False, True))
    for number, (dtype, tied, grouped) in enumerate(kinds, 1):
        named.append((f"a made-up model {number} ({dtype})", _drawn_config(random, dtype, tied, grouped)))
    return named


def config_cases(random: Random) -> list[Case]:
    """One config a case."""
    return [Case(name, {"config": config}) for name, config in _configs(random)]


def model_cases(random: Random) -> list[Case]:
    """A config, and the bytes of one of its layers: drawn, so that this piece does not rest on the one before."""
    return [
        Case(f"made-up layers around {name}", {"config": config, "bytes_per_layer": 256 * random.randint(10**4, 10**7)})
        for name, config in _configs(random)
    ]


def kv_cases(random: Random) -> list[Case]:
    """A config, a context length in tokens, a batch size."""
    cases = []
    for name, config in _configs(random):
        context, batch = random.choice((511, 2048, 8192, 32768)), random.choice((1, 3, 8))
        cases.append(Case(name, {"config": config, "context": context, "batch": batch}))
    return cases


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
    text = json.dumps(header, separators=(",", ":")).encode() if text is None else text
    text += b" " * (-len(text) % 8)
    return {"claimed": len(text) if claimed is None else claimed, "text": text, "size": 8 + len(text) + data}


def good_headers(random: Random) -> list[Case]:
    """Headers as safetensors writes them, of files from a few KB to many GB; one longer than 64 KiB."""
    few, end = _header(_tensors(random, 2))
    many, _ = _header(_tensors(random, random.randint(60, 80)))
    plain, plain_end = _header(_tensors(random, 1), metadata=False)
    return [
        Case("a file of a few KB", {"file": _file(few, end)}),
        Case("a file of many GB with a long header", {"file": _file(many, random.randint(5, 60) * 10**9)}),
        Case("a file without __metadata__", {"file": _file(plain, plain_end)}),
    ]


def hostile_headers(random: Random) -> list[Case]:
    """Files that are no safetensors files, each for one reason, between good ones."""
    header, end = _header(_tensors(random, 1))
    good = _file(header, end)
    text, size = good["text"], good["size"]
    one_short = {"claimed": len(text) + 1, "text": text, "size": 8 + len(text)}
    longest = {**good, "claimed": LONGEST_HEADER, "spaces": LONGEST_HEADER - len(text), "size": 9 * 10**9}
    pickle = b"\x80\x04\x95" + random.randbytes(40)
    cases = [
        ("a sound file", good),
        ("a length of 2**60", {**good, "claimed": 2**60 + random.randrange(2**30)}),
        ("a header longer than its file", {**good, "claimed": size - 8 + random.randint(1, 999)}),
        ("a complete header, but a length of one byte more than the file has", one_short),
        ("a header of more than 100,000,000 bytes", {**good, "claimed": LONGEST_HEADER + 1, "size": 9 * 10**9}),
        ("a sound file whose header, spaces included, has exactly 100,000,000 bytes", longest),
        ("a file of 5 bytes", {"claimed": 3, "text": b"", "size": 5}),
        ("a header cut short", _file(None, end, text=text[: len(text) // 2])),
        ("a header that is a JSON list", _file([header], end)),
        ("a header that is a JSON number", _file(random.randint(1, 99), end)),
        ("a pickle", _file(None, end, text=pickle)),
        ("a sound file that ends with its header", {**good, "size": 8 + len(text)}),
        ("another sound file, of 40 GB", {**good, "size": 40 * 10**9}),
    ]
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


def good_ranges(random: Random) -> list[Case]:
    """Headers whose ranges are sound: with metadata, without, with names out of order of their offsets; of a single
    tensor, and of tensors of one dimension."""
    first, first_end = _header(_tensors(random, 2))
    second, second_end = _header(_tensors(random, 1), metadata=False)
    names = list(first)
    random.shuffle(names)
    return [
        _ranges_case("a header with __metadata__", first, random, first_end),
        _ranges_case("a header without __metadata__", second, random, second_end),
        _ranges_case("the first header in another order", {name: first[name] for name in names}, random, first_end),
        *_small_ranges(random),
    ]


def hostile_ranges(random: Random) -> list[Case]:
    """Headers that would read outside of the file, or give two tensors the same bytes, each for one reason."""

    def damaged(label: str, damage: Any, slack: int = 0) -> Case:
        header, end = _header(_tensors(random, 1))
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
    return [
        _ranges_case("a sound header", sound, random, end),
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


def layer_names(random: Random) -> list[Case]:
    """Ranges by tensor name: layers of one and of two digits, in one run of bytes or in several; with names in the
    order of the bytes, and not."""
    cases = []
    for label, layers, holes, mixed in (
        ("12 layers, each in one run", 12, False, False),
        ("13 layers with holes", 13, True, False),
        ("11 layers whose tensors are not in the order of their names", 11, False, True),
    ):
        start, ranges = 8 * random.randint(50, 5000), []
        tensors = _tensors(random, layers)
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


def _sizes(random: Random, layers: int) -> dict[str, int]:
    layer = 256 * random.randint(10**5, 7 * 10**6)
    return {"layers": layers, "layer": layer, "always": random.randint(layer // 3, 9 * layer)}


def budgets(random: Random) -> list[Case]:
    """Sizes and budgets that fit: all of the model, exactly all, one byte less, a pool, exactly two slots; and real
    cards."""
    cases = []
    for layers in (random.randint(5, 30), random.choice((28, 48, 64, 80))):
        sizes = _sizes(random, layers)
        always, layer = sizes["always"], sizes["layer"]
        middle = random.randint(3, layers - 2)
        for label, budget in (
            ("all of it fits, with room to spare", always + layers * layer + random.randint(1, 3 * layer)),
            ("all of it fits exactly", always + layers * layer),
            ("one byte is missing for all of it", always + layers * layer - 1),
            (f"room for {middle} layers and a bit", always + middle * layer + random.randint(1, layer - 1)),
            ("room for exactly two layers", always + 2 * layer),
        ):
            cases.append(Case(f"{layers} layers, {label}", {"sizes": sizes, "budget": budget}))
    single = _sizes(random, 1)
    cases.append(Case("1 layer that fits", {"sizes": single, "budget": single["always"] + single["layer"]}))
    return cases


def too_small_budgets(random: Random) -> list[Case]:
    """Budgets below the least that works, and the least itself."""
    sizes = _sizes(random, random.randint(4, 80))
    single = _sizes(random, 1)
    least = sizes["always"] + 2 * sizes["layer"]
    cases = [
        ("the least that works", sizes, least),
        ("one byte less than the least", sizes, least - 1),
        ("room for one slot only", sizes, sizes["always"] + sizes["layer"]),
        ("less than what always stays", sizes, sizes["always"] - 1),
        ("a budget of 0", sizes, 0),
        ("1 layer, one byte too little", single, single["always"] + single["layer"] - 1),
    ]
    return [Case(label, {"sizes": size, "budget": budget}) for label, size, budget in cases]
