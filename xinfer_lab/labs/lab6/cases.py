"""The cases of Lab 6: budgets and figures, scans, tensors to encode, and small models to run within a budget."""

from __future__ import annotations

from random import Random
from typing import Any

from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.values import Value

__all__ = [
    "bound_cases",
    "decode_cases",
    "encode_cases",
    "fit_cases",
    "gate_cases",
    "spread_cases",
    "victim_cases",
]


def bound_cases(random: Random) -> list[Case]:
    """Passes that computing, the link, or the host's copying binds, with times that are no whole seconds; ties; nothing
    to move; bytes beyond 2**63. Where two times are as long, they are so in whole numbers: rounding never decides."""

    def case(label: str, resident: float, transfer: float, copying: float | None) -> Case:
        link = random.randint(1 * 10**9, 60 * 10**9)
        moved = round(transfer * link)
        memcpy = None if copying is None else moved / copying
        return Case(label, {"resident": resident, "moved": moved, "link": link, "memcpy": memcpy})

    def tie(label: str, resident: int, transfer: int, copying: int | None) -> Case:
        link = random.randint(10, 60)
        moved = transfer * link * (copying or 1)
        memcpy = None if copying is None else transfer * link
        return Case(label, {"resident": resident, "moved": moved, "link": link * (copying or 1), "memcpy": memcpy})

    short, base = random.uniform(1e-3, 9e-2), random.randint(20, 90)
    exact = random.randint(3, 40)
    halves = {"resident": exact + 0.5, "moved": 2 * exact + 1, "link": 2, "memcpy": None}
    rate = random.randint(2**62, 2**63)
    huge = {"resident": 2.5, "moved": 5 * rate + rate // random.randint(3, 9), "link": 2 * rate, "memcpy": rate}
    cases = [
        case("the link binds", short, random.uniform(1.5, 3.9), None),
        case("computing binds", random.uniform(2.5, 4.5), random.uniform(1.1, 2.0), None),
        case("all of it in a few milliseconds", short, random.uniform(3, 9) * short, None),
        case("staged, and the host's copying binds", short, random.uniform(1.1, 1.5), random.uniform(2.6, 3.9)),
        case("staged, and the link binds all the same", short, random.uniform(2.6, 3.9), random.uniform(1.1, 1.5)),
        case("staged, and computing binds", random.uniform(5.1, 5.9), random.uniform(1, 2), random.uniform(3, 4)),
        case("computing binds by little", 1.9, 1.6, None),
        case("the link binds by little", 1.6, 1.9, 1.7),
        case("copying binds by little", 1.6, 1.7, 1.9),
        Case("more bytes than 63 bits can count", huge),
        Case("more bytes than 63 bits can count, pinned", {**huge, "resident": 1.5, "memcpy": None}),
        Case("nothing has to be moved", {"resident": short, "moved": 0, "link": 25 * 10**9, "memcpy": None}),
        Case("nothing has to be moved, staged", {"resident": short, "moved": 0, "link": 10**9, "memcpy": 10**10}),
        Case("nothing at all", {"resident": 0, "moved": 0, "link": 10**9, "memcpy": 10**10}),
        Case("a tie of computing and the link, in halves", halves),
        tie("a tie of computing and the link", base, base, None),
        tie("staged, a tie of the link and copying", base, 2 * base, 2 * base),
        tie("staged, a tie of computing and copying", 2 * base, base, 2 * base),
        tie("staged, a tie of all three", base, base, base),
    ]
    random.shuffle(cases)
    return cases


def victim_cases(random: Random) -> list[Case]:
    """Layers of a cyclic scan, and those that are held when one of the others is needed."""
    shapes = [(6, 2), (7, 4), (28, 27), (random.randint(9, 20), random.randint(3, 6)), (126, random.randint(20, 60))]
    shapes += [(400, 5), (random.randint(300, 400), random.randint(20, 40))]
    cases = []
    for layers, room in shapes:
        for layer in (0, layers - 1, random.randrange(1, layers - 1)):
            others = [other for other in range(layers) if other != layer]
            held = random.sample(others, room)
            held[0] = (layer - 1) % layers if random.random() < 0.5 and (layer - 1) % layers not in held else held[0]
            cases.append(_scan(layers, layer, held))
    # Both neighbours of the layer that is needed, and held out of order.
    cases.append(_scan(9, 4, [5, 8, 3, 0]))
    cases.append(_scan(9, 0, [1, 7, 4]))
    # A single one, with small numbers and with large ones.
    cases += [_scan(5, 2, [random.choice((0, 1, 3, 4))]), _scan(400, 300, [random.randrange(300)])]
    random.shuffle(cases)
    return cases


def _scan(layers: int, layer: int, held: list[int]) -> Case:
    return Case(f"layer {layer} of {layers} is needed", {"held": held, "layer": layer, "layers": layers})


def spread_cases(random: Random) -> list[Case]:
    """How many of how many layers stream: none, one, all, every second, and what does not divide."""
    shapes = [(6, 0), (6, 1), (6, 6), (8, 4), (7, 3), (10, 4), (28, 11), (64, 44), (20, 17), (9, 6)]
    layers = random.randint(15, 80)
    shapes += [(layers, random.randint(2, layers - 1)), (layers, layers // 2 + 1)]
    shapes += [
        (1, 0),
        (1, 1),
        (2, 1),
        (126, random.randint(40, 90)),
        (random.randint(300, 400), random.randint(5, 299)),
    ]
    return [Case(f"{k} of {n} layers stream", {"layers": n, "streamed": k}) for n, k in shapes]


def fit_cases(random: Random) -> list[Case]:
    """Budgets that are exactly full, a byte short, in between; with room for all layers, for all but one, for two; one
    layer, two, hundreds; bytes beyond 2**63."""
    cases = []
    for layers, unit in ((random.randint(5, 12), 1), (random.randint(20, 126), 1), (random.randint(126, 400), 2**50)):
        layer, always = random.randint(10**5, 10**7) * unit + 1, random.randint(10**6, 10**8) * unit + 1
        middle = random.randint(3, layers - 2)
        rooms = (
            ("room for all layers", always + layers * layer),
            ("much more room than all layers need", always + 3 * layers * layer + random.randint(0, layer)),
            ("a byte too little for all layers", always + layers * layer - 1),
            ("room for two layers", always + 2 * layer),
            ("a byte too little for three layers", always + 3 * layer - 1),
            (f"room for {middle} layers and a half", always + middle * layer + layer // 2),
            ("a byte too little for two layers", always + 2 * layer - 1),
            ("room for one layer", always + layer),
            ("room for nothing more", always),
            ("too little for what is always there", always - random.randint(1, always - 1)),
            ("no memory at all", 0),
        )
        cases += [_fit_case(label, budget, always, layers, layer) for label, budget in rooms]
    for layers in (1, 2, 3):
        layer, always = random.randint(10**5, 10**7), random.randint(10**6, 10**8)
        cases += [
            _fit_case(f"room for {room}", always + room * layer, always, layers, layer) for room in range(layers + 1)
        ]
    random.shuffle(cases)
    return cases


def _fit_case(label: str, budget: int, always: int, layers: int, layer: int) -> Case:
    inputs = {"budget": budget, "always": always, "layers": layers, "layer_bytes": layer}
    return Case(f"{layers} layers, {label}", inputs)


SPECIAL = (0x0000, 0x8000, 0x0001, 0x807F, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1, 0x7F7F, 0x0080)
"""Zeros, subnormals, infinities, NaN, the largest and the smallest normal number."""


def normal(random: Random, count: int, sigma: float = 0.02) -> list[int]:
    """``count`` bfloat16 patterns of normally distributed weights."""
    import struct

    return [struct.unpack("<I", struct.pack("<f", random.gauss(0.0, sigma)))[0] >> 16 for _ in range(count)]


def _window(random: Random, count: int, base: int | None = None) -> list[int]:
    """Patterns whose exponents lie within 15 neighbours, from ``base`` on, and meet both ends of them."""
    base = random.randint(40, 180) if base is None else base
    exponents = [base, base + 14, *(random.randint(base, base + 14) for _ in range(count - 2))]
    return [random.randrange(2) << 15 | exponent << 7 | random.randrange(128) for exponent in exponents]


def _tensor(label: str, bits: list[int]) -> Case:
    import struct

    return Case(f"{label}, {len(bits):,} weights", {"bits": struct.pack(f"<{len(bits)}H", *bits)})


def encode_cases(escapes: bool) -> object:
    """Draws tensors that need no escape; with ``escapes``, tensors that do: normal ones, rare exponents at both ends,
    NaN, infinities, subnormals, and each of the 65,536 patterns once."""

    def cases(random: Random) -> list[Case]:
        if not escapes:
            return [
                _tensor("15 exponents", _window(random, 64)),
                _tensor("15 exponents from the lowest on", _window(random, 65, 0)),
                _tensor("15 exponents up to the highest", _window(random, 64, 241)),
                _tensor("15 exponents, an odd number of weights", _window(random, 2 * random.randint(20, 60) + 1)),
                _tensor("one weight", [random.randrange(2**16)]),
                _tensor("one value many times", [random.randrange(1, 2**16)] * 10),
            ]
        edge = [exponent << 7 for exponent in (241, 255, 250, 255, 243, 254)]
        patterns = list(range(2**16))
        random.shuffle(patterns)
        return [
            _tensor("normally distributed weights", normal(random, 2000)),
            _tensor("normally distributed weights with NaN, infinities and subnormals", _mixed(random)),
            _tensor("two far groups of exponents", _groups(random)),
            _tensor("two far groups of exponents, one behind the other", _behind(random)),
            _tensor("the largest exponents", edge + [random.randrange(2) << 15 | e for e in edge]),
            _tensor("the smallest exponents", [e << 7 | 3 for e in (0, 1, 14, 15, 0, 0, 2, 30, 0)]),
            _tensor("every pattern there is", patterns),
        ]

    return cases


def _mixed(random: Random) -> list[int]:
    bits = normal(random, 501)
    for place, special in zip(random.sample(range(501), len(SPECIAL)), SPECIAL, strict=True):
        bits[place] = special
    return bits


def _groups(random: Random) -> list[int]:
    """Most weights high up, some far below: the window from the smallest exponent on would be the wrong one."""
    low, high = random.randint(10, 60), random.randint(120, 200)
    exponents = [low + random.randrange(3) for _ in range(20)] + [high + random.randrange(15) for _ in range(100)]
    exponents += [high, high + 14]
    random.shuffle(exponents)
    return [random.randrange(2) << 15 | exponent << 7 | random.randrange(128) for exponent in exponents]


def _behind(random: Random) -> list[int]:
    """The rarer exponents come first, several hundred of them: the first part of a tensor says little of its rest."""
    low, high = random.randint(10, 60), random.randint(120, 200)
    count = random.randint(400, 600)
    return [*_window(random, count, low), *_window(random, count + 300, high)]


def decode_cases(escapes: bool) -> object:
    """The same tensors in their coded form, made here from nothing but the format's rules."""
    draw = encode_cases(escapes)

    def cases(random: Random) -> list[Case]:
        import struct

        coded = []
        for case in draw(random):  # type: ignore[operator]
            data = case.inputs["bits"]
            bits = struct.unpack(f"<{len(data) // 2}H", data)
            coded.append(Case(case.label, {"coded": _coded(random, bits)}))
        return coded

    return cases


def _coded(random: Random, bits: tuple[int, ...]) -> dict[str, Value]:
    # Any window is allowed to a decoder; the fullest one, or now and then a poorer one.
    exponents = [value >> 7 & 255 for value in bits]
    counts = [exponents.count(exponent) for exponent in range(256)] if len(bits) < 10_000 else [1] * 256
    base = max(range(242), key=lambda start: sum(counts[start : start + 15]))
    if sum(counts[base : base + 15]) < len(bits):
        base = random.choice((base, min(241, base + 1), random.randrange(242)))
    codes = [exponent - base if 0 <= exponent - base < 15 else 15 for exponent in exponents]
    pairs = [*codes, *([0] if len(codes) % 2 else [])]
    return {
        "base": base,
        "count": len(bits),
        "sign_mantissa": bytes(value >> 8 & 0x80 | value & 0x7F for value in bits),
        "codes": bytes(low | high << 4 for low, high in zip(pairs[::2], pairs[1::2], strict=True)),
        "escapes": bytes(exponent for exponent, code in zip(exponents, codes, strict=True) if code == 15),
    }


def gate_cases(random: Random) -> list[Case]:
    """Six small models, each with a budget and a GPU on which another decision pays."""
    # Imported here: the questions load where the planner and its executors must not be importable.
    from xinfer_lab.labs.lab6.planned_case import PlannedCase, needs_of

    def draw(
        label: str, dtype: str, layers: int, room: float, computing: float, reading: float,
        pinned: float = 1e3, memcpy: float = 0.5,
    ) -> Case:  # fmt: skip
        heads, kv_heads = 4, random.choice((1, 2, 4))
        figures: dict[str, Any] = {
            "layers": layers, "pool": 2, "steps": 4, "prompt": random.randint(2, 4), "batch": 1, "hidden": 16 * heads,
            "heads": heads, "kv_heads": kv_heads, "intermediate": 8 * random.randint(14, 20), "vocab": 64,
            "dtype": dtype, "tied": random.random() < 0.5, "seed": random.randrange(2**31), "memory": 0,
            "computing": computing, "reading": reading, "memcpy": memcpy, "pinned": 0,
        }  # fmt: skip
        case = PlannedCase(**figures)
        needs = needs_of(case)
        plain = needs["forms"]["plain"]
        budget = int(plain["always"] + room * plain["layer_bytes"])
        limit = int(pinned * plain["layer_bytes"])
        needs |= {"budget": budget, "pinned": limit}
        inputs = {**case.inputs(), "memory": budget, "pinned": limit, "needs": needs}
        return Case(f"{layers} layers, {dtype}, {label}", inputs)

    cases = [
        draw("room for about half", "float32", random.randint(7, 9), 4.5, 0.02, 0.03),
        draw("much room", "bfloat16", much := random.randint(12, 16), much - 2.9, 0.02, 0.03),
        draw("computing and link alike", "bfloat16", random.randint(10, 12), random.choice((7.4, 7.7)), 0.55, 0.05),
        draw("little pinned memory", "float32", random.randint(9, 10), 6.5, 0.02, 0.03, pinned=2.0, memcpy=0.6),
        draw("room for all", "bfloat16", 5, 5 + random.random(), 0.1, 0.05),
        draw("little room, much computing", "bfloat16", 7, 3.2, 1.3, 0.05),
    ]
    random.shuffle(cases)
    return cases
