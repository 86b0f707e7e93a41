"""The exponent codec gives back every bit of every bfloat16 tensor, in the bytes that its format says."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_lab.residency.codec.decode import decode
from xinfer_lab.residency.codec.encode import best_window, encode, histogram
from xinfer_lab.residency.codec.format import BLOCK, DECODE_CHUNK, Coding, decode_workspace
from xinfer_lab.residency.codec.packing import pack, unpack

WIDTHS = (1, 2, 3, 4)
EVERY_PATTERN = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
"""Zeros of both signs, subnormals, infinities, every NaN."""


def normal(count: int, seed: int = 0, deviation: float = 0.02) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, generator=generator).mul_(deviation).to(torch.bfloat16)


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal bits: NaN is equal to itself, 0.0 is not equal to -0.0."""
    return torch.equal(a.reshape(-1).view(torch.int16), b.reshape(-1).view(torch.int16))


def returns(weights: torch.Tensor, width: int) -> Coding | None:
    """Encode and decode, and compare every bit."""
    before = weights.clone()
    coding, encoded = encode(weights, width)
    assert same(weights, before)
    assert same(decode(coding, encoded), weights)
    assert encoded.numel() == (2 * weights.numel() if coding is None else coding.nbytes) <= 2 * weights.numel()
    return coding


# Every bit


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("base", ["all", "NaN", *range(0, 240, 17)])
def test_every_bit_pattern_comes_back(width: int, base: int | str) -> None:
    """Alone, where coding does not pay, and among so many weights of common exponents that it does."""
    if base == "all":
        assert returns(EVERY_PATTERN, width) is None
        return
    if base == "NaN":
        assert returns((torch.arange(600_000) % 128 + 128 * 255).to(torch.int16).view(torch.bfloat16), width) is None
        return
    common = (torch.arange(600_000) % 128 + 128 * int(base)).to(torch.int16).view(torch.bfloat16)
    coding = returns(torch.cat([common, EVERY_PATTERN, common[:5]]), width)
    assert coding is not None and coding.base <= int(base) < coding.base + coding.window
    assert coding.escapes == 65536 - 256 * coding.window


bits = st.integers(0, 65535)
tensors = st.one_of(
    st.lists(bits, min_size=1, max_size=300),
    # Few exponents, among them those of zero and of NaN.
    st.lists(st.builds(lambda e, rest: e << 7 | rest, st.sampled_from([0, 1, 120, 121, 124, 255]), st.integers(0, 127)),
             min_size=1, max_size=300),
    st.lists(st.builds(lambda e, rest: (e << 7 | rest) ^ 0x8000, st.integers(100, 108), st.integers(0, 127)),
             min_size=1, max_size=300),
)  # fmt: skip


@settings(max_examples=300)
@given(patterns=tensors, repeat=st.integers(1, 60), cut=st.integers(0, 40), width=st.sampled_from(WIDTHS))
def test_any_tensor_comes_back(patterns: list[int], repeat: int, cut: int, width: int) -> None:
    whole = torch.tensor(patterns * repeat, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    returns(whole[: max(1, whole.numel() - cut)], width)


@pytest.mark.parametrize("width", (3, 4))
@pytest.mark.parametrize("around", [BLOCK, 2 * BLOCK, DECODE_CHUNK, 2**18])
@pytest.mark.parametrize("more", [-9, -8, -1, 0, 1, 7, 8, 9])
def test_sizes_around_blocks_and_chunks(width: int, around: int, more: int) -> None:
    assert returns(normal(around + more), width) is not None


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 63])
def test_what_coding_would_not_make_smaller_stays_as_it_is(count: int) -> None:
    assert returns(normal(count), 3) is None or count == 63
    assert returns(torch.zeros(count, dtype=torch.bfloat16), 4) is None or count == 63


def test_a_tensor_of_escapes_only_stays_as_it_is_and_blocks_of_them_come_back() -> None:
    scattered = torch.arange(3 * BLOCK).mul(131).remainder(65536).to(torch.int32).to(torch.int16).view(torch.bfloat16)
    assert returns(scattered, 3) is None
    common = normal(20 * BLOCK)
    for parts in ([scattered, common], [common, scattered], [common, scattered[:100], common, scattered[:5000]]):
        coding = returns(torch.cat(parts), 3)
        assert coding is not None and coding.escapes > 90


def test_nothing_escapes_where_few_exponents_occur() -> None:
    weights = torch.arange(10_000).remainder(7).add(100).mul(128).add(5).to(torch.int16).view(torch.bfloat16)
    coding = returns(weights, 3)
    assert coding == Coding(3, 100, 10_000, 0)
    assert set(coding.sections) == {"sign_mantissa", "codes"}


def test_any_shape_and_any_layout_in_memory_is_taken_in_the_order_of_its_elements() -> None:
    whole = normal(96 * 256).view(96, 256)
    for weights in (whole, whole.t(), whole[:, ::2], whole[5:]):
        coding, encoded = encode(weights, 3)
        assert coding is not None and same(decode(coding, encoded), weights.contiguous())


# What the bytes are


def by_hand(coding: Coding, encoded: torch.Tensor) -> list[int]:
    """The weights' bits, decoded one by one as the format's text has it."""
    data = bytes(encoded.tolist())
    parts = {name: data[s.offset : s.offset + s.nbytes] for name, s in coding.sections.items()}
    codes = int.from_bytes(parts["codes"], "little")
    weights, taken = [], 0
    for place, rest in enumerate(parts["sign_mantissa"]):
        if place % BLOCK == 0 and coding.escapes:
            first = 4 * (place // BLOCK)
            assert int.from_bytes(parts["offsets"][first : first + 4], "little", signed=True) == taken
        # Eight codes fill whole bytes, so that one long number holds them all.
        code = codes >> place * coding.width & 2**coding.width - 1
        if code == 2**coding.width - 1:
            exponent = parts["escapes"][taken]
            taken += 1
        else:
            exponent = coding.base + code
        weights.append((rest & 0x80) << 8 | exponent << 7 | rest & 0x7F)
    assert taken == coding.escapes
    return weights


@pytest.mark.parametrize("width", WIDTHS)
def test_the_bytes_are_what_the_format_says(width: int) -> None:
    weights = normal(BLOCK + 301, seed=width)
    weights[[7, 4095, 4096, -1]] = 1e20
    coding, encoded = encode(weights, width)
    assert coding is not None and coding.escapes
    assert by_hand(coding, encoded) == weights.view(torch.int16).to(torch.int32).bitwise_and(0xFFFF).tolist()
    inside = torch.zeros(encoded.numel(), dtype=torch.bool)
    for section in coding.sections.values():
        assert section.offset % 16 == 0 and not inside[section.offset : section.offset + section.nbytes].any()
        inside[section.offset : section.offset + section.nbytes] = True
    assert not encoded[~inside].any()


@given(width=st.sampled_from(WIDTHS), groups=st.integers(1, 9), seed=st.integers(0, 999))
def test_codes_are_packed_lowest_bits_first(width: int, groups: int, seed: int) -> None:
    codes = torch.randint(2**width, (8 * groups,), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
    packed = pack(codes, width)
    number = sum(code << place * width for place, code in enumerate(codes.tolist()))
    assert int.from_bytes(bytes(packed.tolist()), "little") == number
    assert torch.equal(unpack(packed, width), codes)


@given(counts=st.lists(st.integers(0, 1000), min_size=256, max_size=256), width=st.sampled_from(WIDTHS))
def test_no_window_leaves_fewer_escapes(counts: list[int], width: int) -> None:
    window = 2**width - 1
    base, escapes = best_window(torch.tensor(counts), width)
    left = [sum(counts) - sum(counts[start : start + window]) for start in range(256 - window)]
    assert 0 <= base <= 255 - window and escapes == left[base] == min(left)


def test_exponents_are_counted() -> None:
    counts = histogram(torch.cat([EVERY_PATTERN, torch.ones(10, dtype=torch.bfloat16)]))
    expected = [256] * 256
    expected[127] += 10
    assert counts.tolist() == expected


def test_bits_a_weight_of_normal_weights() -> None:
    """What the text of the course says, and the format's own account of it."""
    weights = normal(2**22)
    for width, expected in ((3, 11.18), (4, 12.01)):
        coding, encoded = encode(weights, width)
        assert coding is not None
        told = 8 + width + 32 / BLOCK + 8 * coding.escapes / coding.count
        assert 8 * encoded.numel() / weights.numel() == pytest.approx(told, abs=1e-4)
        assert told == pytest.approx(expected, abs=5e-3)


# Refusals


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int16, torch.uint8])
def test_other_types_are_refused_by_name(dtype: torch.dtype) -> None:
    with pytest.raises(TypeError, match=f"bfloat16 weights, not {dtype}"):
        encode(torch.zeros(100, dtype=dtype), 3)


@pytest.mark.parametrize(
    ("change", "name"),
    [({"width": 0}, "width"), ({"width": 5}, "width"), ({"base": -1}, "base"), ({"base": 249}, "base"),
     ({"count": 0}, "count"), ({"escapes": 11}, "escapes"), ({"escapes": -1}, "escapes"), ({"base": 1.0}, "base"),
     ({"width": True}, "width"), ({"count": "10"}, "count")],
)  # fmt: skip
def test_a_coding_that_cannot_be_is_refused(change: dict[str, object], name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} of a coding must be"):
        Coding(**{"width": 3, "base": 100, "count": 10, "escapes": 2, **change})


# Memory


@pytest.mark.parametrize("count", [5, 1000, 3 * BLOCK + 5, DECODE_CHUNK, 2 * DECODE_CHUNK + 77])
@pytest.mark.parametrize("width", [3, 4])
def test_decoding_takes_no_more_than_its_declared_workspace(count: int, width: int) -> None:
    from tests.memory import peak_on_cpu

    coding, encoded = encode(torch.cat([normal(count), torch.full((64,), 1e30, dtype=torch.bfloat16)])[-count:], width)
    if coding is None:
        coding, encoded = Coding(width, 0, count, 0), torch.zeros(Coding(width, 0, count, 0).nbytes, dtype=torch.uint8)
    result = peak_on_cpu(lambda: decode(coding, encoded)) - 2 * count
    assert decode_workspace(count) / 3 - 5000 < result <= decode_workspace(count)


# On a GPU


@pytest.mark.cuda
@pytest.mark.parametrize("width", WIDTHS)
def test_a_gpu_encodes_to_the_same_bytes(width: int) -> None:
    for weights in (torch.cat([normal(700_000), EVERY_PATTERN]), normal(BLOCK), normal(100_003, seed=2)):
        coding, encoded = encode(weights, width)
        there, bytes_there = encode(weights.cuda(), width)
        assert there == coding and torch.equal(bytes_there.cpu(), encoded)
        assert same(decode(there, bytes_there).cpu(), weights)
