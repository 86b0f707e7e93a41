"""The cases of Lab 1 about sizes: configs as in published config.json files, contexts, budgets."""

from __future__ import annotations

from random import Random
from typing import Any

from xinfer_lab.grading.piece import Case

__all__ = [
    "budgets",
    "config_cases",
    "config_json",
    "kv_cases",
    "model_cases",
    "too_small_budgets",
]


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
        "num_hidden_layers": random.randint(3, 126),
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
    cases = [
        Case(f"made-up layers around {name}", {"config": config, "bytes_per_layer": 256 * random.randint(10**4, 10**7)})
        for name, config in _configs(random)
    ]
    large = _drawn_config(random, "bfloat16", False, True)
    return [*cases, Case("made-up layers of 2**62 bytes", {"config": large, "bytes_per_layer": 2**62 + 1})]


def kv_cases(random: Random) -> list[Case]:
    """A config, a context length in tokens, a batch size."""
    cases = []
    for name, config in _configs(random):
        context, batch = random.choice((511, 2048, 8192, 32768, 131072)), random.choice((1, 3, 8, 300))
        cases.append(Case(name, {"config": config, "context": context, "batch": batch}))
    large = _drawn_config(random, "float16", False, True)
    cases.append(Case("a context of 2**40 tokens", {"config": large, "context": 2**40 + 1, "batch": 2**20 + 1}))
    return cases


def _sizes(random: Random, layers: int, least: int = 0) -> dict[str, int]:
    layer = least + 256 * random.randint(10**5, 7 * 10**6) + (least > 0)
    return {"layers": layers, "layer": layer, "always": random.randint(layer // 3, 9 * layer)}


def budgets(random: Random) -> list[Case]:
    """Sizes and budgets that fit: all of the model, exactly all, one byte less, a pool, exactly two slots; and real
    cards."""
    cases = []
    few, many = random.randint(5, 30), random.choice((28, 48, 64, 80))
    for sizes in (_sizes(random, few), _sizes(random, many), _sizes(random, 126, 2**66), _sizes(random, 300)):
        layers = sizes["layers"]
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
    large, many = _sizes(random, 126, 2**66), _sizes(random, 300)
    least = sizes["always"] + 2 * sizes["layer"]
    cases = [
        ("the least that works", sizes, least),
        ("one byte less than the least", sizes, least - 1),
        ("room for one slot only", sizes, sizes["always"] + sizes["layer"]),
        ("less than what always stays", sizes, sizes["always"] - 1),
        ("a budget of 0", sizes, 0),
        ("1 layer, one byte too little", single, single["always"] + single["layer"] - 1),
        ("1 layer, the least that works", single, single["always"] + single["layer"]),
        ("one byte less than the least, of more than 2**66", large, large["always"] + 2 * large["layer"] - 1),
        ("300 layers, one byte less than the least", many, many["always"] + 2 * many["layer"] - 1),
    ]
    random.shuffle(cases)
    return [Case(label, {"sizes": size, "budget": budget}) for label, size, budget in cases]
