"""Command streams as data: round trips, and the refusal of everything else."""

import base64
import copy
import json
import math

import jsonschema
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.device_programs import Ring, emulated
from xinfer_lab.device.errors import StreamError
from xinfer_lab.device.records import DTYPE_BYTES, HEAPS, RECORD_TYPES, Copy, Free, HostWait, Source, Span, View
from xinfer_lab.device.stream import (
    MAX_INPUT_BYTES,
    CommandStream,
    record_from_dict,
    record_to_dict,
    stream_schema,
)
from xinfer_lab.device.stream_schema import field_types

SCHEMA = jsonschema.Draft7Validator(stream_schema())

names = st.text(min_size=1, max_size=12)
texts = st.text(max_size=12)
counts = st.integers(0, 2**53)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(-1e15, 1e15), st.text(max_size=20)
)
views = st.builds(View, names, counts, st.lists(counts, max_size=8).map(tuple), st.sampled_from(sorted(DTYPE_BYTES)))
BY_TYPE = {
    int: counts,
    str: names,
    bool: st.booleans(),
    Span: st.builds(Span, names, counts, counts),
    Source: st.builds(Source, names, counts, counts),
}
BY_NAME = {
    "heap": st.sampled_from(HEAPS),
    "where": texts,
    "label": texts,
    "digest": st.sampled_from(["", "0123456789abcdef" * 2]),
    "operands": st.dictionaries(names, views, max_size=3),
    "params": st.dictionaries(names, scalars, max_size=3),
}


def _record(op):
    fields = {name: BY_NAME[name] if name in BY_NAME else BY_TYPE[hint] for name, hint in field_types(op).items()}
    return st.builds(RECORD_TYPES[op], **fields)


records = st.sampled_from(sorted(RECORD_TYPES)).flatmap(_record)
streams = st.builds(
    CommandStream, st.lists(records, max_size=6), st.dictionaries(names, st.binary(max_size=9), max_size=3)
)


def same(one, two):
    return one.records == two.records and one.inputs == two.inputs


def accepted(data):
    try:
        CommandStream.from_dict(data)
    except StreamError:
        return False
    return True


# ------------------------------------------------------------------------------------------------------------ round
# trip


@given(streams)
def test_what_is_written_is_read_again(stream):
    text = json.dumps(stream.to_dict())
    back = CommandStream.from_dict(json.loads(text))
    assert same(back, stream)
    assert [type(record) for record in back] == [type(record) for record in stream]


@given(streams)
def test_what_is_written_fits_the_schema(stream):
    SCHEMA.validate(json.loads(json.dumps(stream.to_dict())))


@given(stream=streams)
@settings(max_examples=20)
def test_a_saved_stream_loads_again(stream, tmp_path_factory):
    path = tmp_path_factory.mktemp("stream") / "stream.json"
    stream.save(path)
    assert same(CommandStream.load(path), stream)


def test_what_a_device_recorded_loads_again(tmp_path):
    with emulated() as device:
        Ring(device).run()
    device.stream.save(tmp_path / "stream.json")
    assert same(CommandStream.load(tmp_path / "stream.json"), device.stream)


def test_the_schema_itself_is_sound():
    jsonschema.Draft7Validator.check_schema(stream_schema())


# --------------------------------------------------------------------------------------------------- the schema and
# the code

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**53, 2**53 + 1, 10**30, -(2**60), 1e300, 0.5, -1.0]),
    st.sampled_from(
        ["", "default", "device", "float64", "copy", "x" * 257, "x" * 1025, "QQ==", "QQ", "QQ==\n", "=", "\n"]
    ),
    st.sampled_from(["0123456789abcdef" * 2, "0123456789abcdef" * 2 + "\n", "0123456789ABCDEF" * 2]),
    st.lists(st.integers(0, 3), max_size=9),
    st.dictionaries(st.sampled_from(["", "offset", "name", "y" * 300]), st.integers(0, 2), max_size=2),
)


def places(data, path=()):
    """The path of every value inside ``data``."""
    yield path
    if isinstance(data, (dict, list)):
        for key in data if isinstance(data, dict) else range(len(data)):
            yield from places(data[key], (*path, key))


def integral_float(data):
    """Whether there is a 4.0 where the schema takes it for 4: the decoder does not."""
    return any(isinstance(at(data, path), float) and "params" not in path for path in places(data))


def at(data, path):
    for key in path:
        data = data[key]
    return data


@given(st.data())
@settings(max_examples=250)
def test_the_schema_and_the_decoder_agree_on_broken_streams(data):
    broken = json.loads(json.dumps(data.draw(streams).to_dict()))
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(sorted(places(broken), key=str)))
        if not path:
            continue
        parent, key = at(broken, path[:-1]), path[-1]
        match data.draw(st.sampled_from(["replace", "remove", "add"])):
            case "replace":
                parent[key] = data.draw(JUNK)
            case "remove":
                del parent[key]
            case "add" if isinstance(parent, dict):
                parent[data.draw(st.sampled_from(["more", "", "size", "z" * 257]))] = data.draw(JUNK)
    assume(not integral_float(broken))
    assert accepted(broken) == SCHEMA.is_valid(broken)


@pytest.mark.parametrize("op", sorted(RECORD_TYPES))
@given(data=st.data())
@settings(max_examples=10)
def test_no_field_of_a_record_may_be_missing_and_none_may_be_added(op, data):
    whole = record_to_dict(data.draw(_record(op)))
    assert record_from_dict(whole) is not None
    for name in whole:
        with pytest.raises(StreamError):
            record_from_dict({key: value for key, value in whole.items() if key != name})
    with pytest.raises(StreamError):
        record_from_dict({**whole, "extra": 0})


# ------------------------------------------------------------------------------------------------------------- refusals

SMALL = CommandStream(
    [
        Copy(queue="copy", dst=Span("a", 0, 4), src=Span("b", 0, 4), call=1),
        HostWait(fence="f", value=1),
    ],
    {"tokens": b"abcd"},
).to_dict()


def broken(path, value):
    data = copy.deepcopy(SMALL)
    at(data, path[:-1])[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "match"),
    [
        (["format"], "other", "format"),
        (["version"], 2, "version 2"),
        (["version"], True, "version True"),
        (["version"], 1.0, "version 1.0"),
        (["inputs"], [], "object"),
        (["records"], {}, "array"),
        (["more"], 1, "more"),
        (["records", 0], 7, "record 0"),
        (["records", 0, "op"], "teleport", "op must be one of"),
        (["records", 0, "op"], ["copy"], "op must be one of"),
        (["records", 0, "call"], 1.0, "integer"),
        (["records", 0, "call"], True, "integer"),
        (["records", 0, "call"], -1, "record 0"),
        (["records", 0, "dst", "size"], 4.0, "size must be an integer"),
        (["records", 0, "dst", "size"], 2**53 + 1, "record 0"),
        (["records", 0, "dst", "size"], 10**400, "record 0"),
        (["records", 0, "dst"], None, "record 0"),
        (["records", 0, "dst", "stride"], 1, "record 0"),
        (["records", 0, "queue"], "", "record 0"),
        (["records", 0, "queue"], "q" * 257, "record 0"),
        (["records", 0, "label"], "l" * 1025, "record 0"),
        (["records", 1, "value"], "1", "record 1"),
        (["records", 1, "fence"], None, "record 1"),
        (["inputs", "tokens"], "not base64!", "base64"),
        (["inputs", "tokens"], "YWJj\n", "base64"),
        (["inputs", "tokens"], "YWJjZA", "base64"),
        (["inputs", "tokens"], "YQ==YQ==", "base64"),
        (["inputs", "tokens"], "é===", "base64"),
        (["inputs", "tokens"], 7, "base64"),
        (["inputs", "n" * 257], "", "name of an input"),
    ],
)
def test_a_malformed_stream_is_refused_with_its_place(path, value, match):
    with pytest.raises(StreamError, match=match):
        CommandStream.from_dict(broken(path, value))


def dispatch(**changes):
    view = {"buffer": "b", "offset": 0, "shape": [2], "dtype": "float32"}
    base = {
        "op": "dispatch", "queue": "direct", "kernel": "k", "operands": {"x": view}, "params": {}, "call": 1,
        "label": "", "listed": False, "where": "",
    }  # fmt: skip
    return {**base, **changes}


@pytest.mark.parametrize(
    "changes",
    [
        {"params": {"p": [1]}},
        {"params": {"p": {}}},
        {"params": {"p": "s" * 257}},
        {"params": {"p": math.nan}},
        {"params": {"p": math.inf}},
        {"params": {"p": -math.inf}},
        {"params": {"p": 10**400}},
        {"params": {"": 1}},
        {"params": {str(i): i for i in range(65)}},
        {"operands": {"x": {"buffer": "b", "offset": 0, "shape": [2.0], "dtype": "float32"}}},
        {"operands": {"x": {"buffer": "b", "offset": 0, "shape": [1] * 9, "dtype": "float32"}}},
        {"operands": {"x": {"buffer": "b", "offset": 0, "shape": [2], "dtype": "float64"}}},
        {"operands": {"x": {"buffer": "b", "offset": 0, "shape": 2, "dtype": "float32"}}},
        {"operands": {"": dispatch()["operands"]["x"]}},
        {"operands": []},
        {"listed": 1},
        {"listed": None},
    ],
)
def test_a_malformed_dispatch_is_refused(changes):
    assert record_from_dict(dispatch()) is not None
    with pytest.raises(StreamError):
        record_from_dict(dispatch(**changes))


def test_parameters_keep_their_types():
    params = {"i": 1, "f": 1.0, "t": True, "n": None, "s": "x", "e": 1e-6}
    back = record_from_dict(json.loads(json.dumps(dispatch(params=params))))
    assert {name: type(value) for name, value in back.params.items()} == {k: type(v) for k, v in params.items()}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[" * 200_000,
        b'{"records":' * 50_000,
        b"null",
        b"[]",
        b"7",
        json.dumps(SMALL).replace('"call": 1', '"call": NaN').encode(),
        json.dumps(SMALL).replace('"call": 1', '"call": Infinity').encode(),
        json.dumps(SMALL).replace('"call": 1', '"call": 1e999').encode(),
        json.dumps(SMALL).replace('"call": 1', '"call": ' + "9" * 5000).encode(),
        json.dumps({**SMALL, "records": [[[[[]]]]]}).encode(),
    ],
    ids=range(13),
)
def test_a_file_that_is_no_stream_is_refused(text, tmp_path):
    (tmp_path / "stream.json").write_bytes(text)
    with pytest.raises(StreamError):
        CommandStream.load(tmp_path / "stream.json")


def test_nan_and_infinity_are_refused_wherever_a_file_has_them(tmp_path):
    text = json.dumps({**SMALL, "records": [dispatch(params={"p": 12.5})]})
    (tmp_path / "stream.json").write_text(text)
    assert len(CommandStream.load(tmp_path / "stream.json")) == 1
    for word in ("NaN", "Infinity", "-Infinity", "1e999"):
        (tmp_path / "stream.json").write_text(text.replace("12.5", word))
        with pytest.raises(StreamError):
            CommandStream.load(tmp_path / "stream.json")


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        CommandStream.load(tmp_path / "none.json")


def test_deep_nesting_inside_a_record_is_refused():
    deep: object = 0
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(StreamError):
        record_from_dict(dispatch(params={"p": deep}))
    with pytest.raises(StreamError):
        record_from_dict(dispatch(operands=deep))
    while isinstance(
        deep, list
    ):  # taken apart step by step: freed at once, it would overflow the C stack of old Pythons
        deep = deep[0]


def test_inputs_are_small():
    text = base64.b64encode(bytes(MAX_INPUT_BYTES // 2)).decode()
    assert accepted({**SMALL, "inputs": {"one": text, "two": text}})
    with pytest.raises(StreamError, match=str(MAX_INPUT_BYTES)):
        CommandStream.from_dict({**SMALL, "inputs": {"one": text, "two": text, "three": "QQ=="}})


# --------------------------------------------------------------------------------------------------------------- saving


@pytest.mark.parametrize(
    "stream",
    [
        CommandStream([Free(buffer="")]),
        CommandStream([Free(buffer="b", where="w" * 1025)]),
        CommandStream([HostWait(fence="f", value=-1)]),
        CommandStream([HostWait(fence="f", value=2.0)]),
        CommandStream([], {"big": bytes(MAX_INPUT_BYTES + 1)}),
    ],
    ids=["no name", "long", "negative", "float", "big"],
)
def test_nothing_is_saved_that_could_not_be_loaded(stream, tmp_path):
    with pytest.raises(StreamError, match="cannot be saved"):
        stream.save(tmp_path / "stream.json")
    assert not (tmp_path / "stream.json").exists()


# ------------------------------------------------------------------------------------------------------------- as a
# list


def test_a_stream_without_some_records_is_a_copy():
    stream = CommandStream([Free(buffer=name) for name in "abcd"], {"x": b"1"})
    shorter = stream.without(1, -1)
    assert [record.buffer for record in shorter] == ["a", "c"]
    shorter.inputs.clear()
    assert len(stream) == 4 and stream.inputs == {"x": b"1"}


def test_a_stream_cannot_lose_what_it_has_not():
    with pytest.raises(IndexError):
        CommandStream([Free(buffer="a")]).without(1)
    with pytest.raises(IndexError):
        CommandStream().without(0)


def test_append_returns_the_index():
    stream = CommandStream()
    assert [stream.append(Free(buffer=name)) for name in "ab"] == [0, 1]
    assert stream[1].buffer == "b"
