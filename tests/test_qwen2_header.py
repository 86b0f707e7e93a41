"""The header of a safetensors file: what is read from a good one, what is said of a bad one."""

import json

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save, save_file

from xinfer_lab.qwen2.errors import CheckpointError
from xinfer_lab.qwen2.header import WEIGHT_DTYPES, read_header

quick = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
"""Each example writes over the one file of the test's directory, so examples may share that directory."""

SHAPES = st.dictionaries(st.text("abc.", min_size=1, max_size=6), st.lists(st.integers(0, 4), max_size=3), max_size=5)


def file_of(directory, header, data=b"", length=None):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    file = directory / "x.safetensors"
    file.write_bytes((len(raw) if length is None else length).to_bytes(8, "little") + raw + data)
    return file


def one(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@quick
@given(SHAPES, st.sampled_from(list(WEIGHT_DTYPES.values())), st.booleans())
def test_entries_are_where_the_library_wrote_the_tensors(tmp_path, shapes, dtype, with_metadata):
    tensors = {name: torch.randn(shape).to(dtype) for name, shape in shapes.items()}
    file = tmp_path / "x.safetensors"
    save_file(tensors, file, metadata={"format": "pt"} if with_metadata else None)
    content, entries = file.read_bytes(), read_header(file)
    assert entries.keys() == tensors.keys()
    assert [entry.offset for entry in entries.values()] == sorted(entry.offset for entry in entries.values())
    for name, tensor in load_file(file).items():
        entry = entries[name]
        assert (entry.name, entry.file, entry.shape) == (name, file, tuple(tensor.shape))
        assert WEIGHT_DTYPES[entry.dtype] == dtype
        assert (
            content[entry.offset : entry.offset + entry.nbytes] == tensor.view(-1).view(torch.uint8).numpy().tobytes()
        )


def test_tensors_without_elements_take_no_bytes(tmp_path):
    header = {"a": one(shape=(0, 3), offsets=(0, 0)), "b": one(), "c": one("U8", (0,), (8, 8))}
    entries = read_header(file_of(tmp_path, header, bytes(8)))
    assert [entry.nbytes for entry in entries.values()] == [0, 8, 0]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"x\.safetensors: no such file"):
        read_header(tmp_path / "x.safetensors")


@pytest.mark.parametrize("content", [b"", b"1234567"])
def test_a_file_too_short_for_a_header_length(tmp_path, content):
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match=f"truncated.*has {len(content)} bytes"):
        read_header(tmp_path / "x.safetensors")


@pytest.mark.parametrize("length", [3, 1 << 40, (1 << 64) - 1])
def test_a_header_that_should_reach_beyond_the_file(tmp_path, length):
    with pytest.raises(CheckpointError, match=f"its header should take {length} bytes, but only 2 follow"):
        read_header(file_of(tmp_path, b"{}", length=length))


def test_a_header_longer_than_the_format_allows(tmp_path):
    file = tmp_path / "x.safetensors"
    with file.open("wb") as stream:  # a hole in the file: nothing is written for it
        stream.write((100_000_001).to_bytes(8, "little"))
        stream.truncate(100_000_009)
    with pytest.raises(CheckpointError, match="more than the 100000000"):
        read_header(file)


@pytest.mark.parametrize(
    "header, data, message",
    [
        (b"{", b"", "not valid JSON"),
        (b"\xff\xff", b"", "not valid JSON"),
        (b"[" * 100_000, b"", "not valid JSON"),
        (b"[]", b"", "must be a JSON object, but is a list"),
        (b'{"a": 1, "a": 2}', b"", "names 'a' twice"),
        ({"a": 5}, b"", "tensor a: its header entry must be an object, but is 5"),
        ({"a\ud800": one()}, bytes(8), r"'a\\ud800'"),
        ({"a": one(dtype=32)}, bytes(8), "tensor a: its dtype must be a name, but is 32"),
        ({"a": one(shape=(2, -1))}, bytes(8), r"tensor a: its shape must be a list of sizes, but is \[2, -1\]"),
        ({"a": one(shape=(True, 2))}, bytes(8), "tensor a: its shape"),
        ({"a": {"dtype": "F32", "shape": 2, "data_offsets": [0, 8]}}, bytes(8), "tensor a: its shape"),
        (
            {"a": one(offsets=(8, 0))},
            bytes(8),
            r"tensor a: its data_offsets must be a start and an end, but are \[8, 0\]",
        ),
        ({"a": one(offsets=(0, 4, 8))}, bytes(8), "tensor a: its data_offsets"),
        ({"a": {"dtype": "F32", "shape": [2]}}, bytes(8), "tensor a: its data_offsets .* None"),
        ({"a": one(offsets=(0, 7))}, bytes(8), r"tensor a: F32 of shape \[2\] takes 8 bytes, but .* span 7"),
        ({"a": one(dtype="BF16")}, bytes(8), "tensor a: BF16 .* takes 4 bytes"),
        ({"a": one(), "b": one(offsets=(8, 16))}, bytes(12), "tensor b: truncated: its data should end at byte"),
        ({"a": one(), "b": one(offsets=(4, 12))}, bytes(12), "tensors a and b overlap"),
        ({"a": one(), "b": one(offsets=(12, 20))}, bytes(20), "between a and b belong to no tensor"),
        ({"a": one(offsets=(4, 12))}, bytes(12), "between the header and a belong to no tensor"),
        ({"a": one()}, bytes(9), "its tensors end at byte"),
    ],
)
def test_a_header_that_cannot_be_right(tmp_path, header, data, message):
    with pytest.raises(CheckpointError, match=message) as caught:
        read_header(file_of(tmp_path, header, data))
    assert str(caught.value).startswith(str(tmp_path / "x.safetensors"))
    assert "\n" not in str(caught.value)


GOOD = save({"a": torch.arange(6.0).view(2, 3), "b": torch.arange(3).to(torch.bfloat16)}, {"format": "pt"})


@quick
@given(st.integers(0, len(GOOD) - 1))
def test_a_file_cut_short_anywhere_is_refused(tmp_path, length):
    (tmp_path / "x.safetensors").write_bytes(GOOD[:length])
    with pytest.raises(CheckpointError):
        read_header(tmp_path / "x.safetensors")


def _check_any(directory, content):
    file = directory / "x.safetensors"
    file.write_bytes(content)
    try:
        entries = read_header(file)
    except CheckpointError as error:
        assert str(error).startswith(str(file))
        return
    ends = 0
    for entry in entries.values():
        assert entry.offset >= ends
        ends = entry.offset + entry.nbytes
    assert ends <= len(content)


@settings(quick, max_examples=300)
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=3))
def test_any_damage_is_refused_or_harmless(tmp_path, changes):
    content = bytearray(GOOD)
    for position, value in changes:
        content[position] = value
    _check_any(tmp_path, bytes(content))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-4, 40) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
ENTRY = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "BF16", "U8", "F4"]) | JSON,
        "shape": st.lists(st.integers(-1, 4), max_size=2) | JSON,
        "data_offsets": st.lists(st.integers(-1, 40), min_size=2, max_size=2) | JSON,
    }
)


@quick
@given(st.dictionaries(st.text(max_size=3) | st.just("__metadata__"), ENTRY | JSON, max_size=3), st.binary(max_size=40))
@example({"a": one(shape=(10**30,))}, bytes(8))
def test_any_header_is_read_within_the_file_or_refused(tmp_path, header, data):
    raw = json.dumps(header).encode()
    _check_any(tmp_path, len(raw).to_bytes(8, "little") + raw + data)
