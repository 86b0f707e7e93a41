"""Values cross from the student's process as data: nothing is lost that counts, nothing is believed."""

from __future__ import annotations

import json
import math
from contextlib import suppress

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from xinfer_lab.grading.values import MAX_NODES, BadData, Opaque, decode, encode, shown

scalars = (
    st.none() | st.booleans() | st.integers(-(2**200), 2**200) | st.floats(allow_nan=False) | st.text() | st.binary()
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.none(), inner),
    max_leaves=20,
)


@given(values)
def test_what_is_encoded_comes_back_equal_through_json_text(value: object) -> None:
    text = json.dumps(encode(value), allow_nan=False)
    assert decode(json.loads(text)) == value


@given(values)
def test_types_come_back_too(value: object) -> None:
    def types(item: object) -> object:
        if isinstance(item, list):
            return [types(part) for part in item]
        if isinstance(item, dict):
            return [(type(key), types(part)) for key, part in item.items()]
        return type(item)

    assert types(decode(encode(value))) == types(value)


def test_nan_and_infinity_are_told_apart_from_numbers() -> None:
    assert math.isnan(decode(encode(float("nan"))))
    assert decode(encode([math.inf, -math.inf])) == [math.inf, -math.inf]


def test_a_tuple_is_a_list_and_a_numpy_integer_an_int() -> None:
    assert decode(encode((1, np.int32(2)))) == [1, 2]
    assert type(decode(encode(np.int64(5)))) is int and type(decode(encode(True))) is bool


def test_what_has_no_form_here_is_carried_by_its_type_and_name() -> None:
    found = decode(encode(torch.tensor([3])))
    assert isinstance(found, Opaque) and found.type == "torch.Tensor" and "tensor([3])" in found.text


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_a_repr_that_fails_does_no_harm() -> None:
    assert "RuntimeError" in decode(encode(Unshowable())).text


@pytest.mark.parametrize(
    "build", [lambda: 10**5000, lambda: "x" * 2_000_000, lambda: [0] * (MAX_NODES + 1), lambda: knot()]
)
def test_what_is_too_large_or_endless_is_cut_and_can_still_be_read(build: object) -> None:
    data = encode(build())  # type: ignore[operator]
    assert len(json.dumps(data)) < 100_000
    decode(json.loads(json.dumps(data)))


def knot() -> list:
    found: list = []
    found.append(found)
    return found


@pytest.mark.parametrize(
    "data",
    [
        {"$": "int", "hex": "zz"},
        {"$": "int", "hex": "0x" + "f" * 100_000},
        {"$": "float", "text": "1e5"},
        {"$": "bytes", "hex": "0"},
        {"$": "dict", "items": [[1]]},
        {"$": "dict", "items": [[[1], 2]]},
        {"$": "dict", "items": [], "more": 1},
        {"$": "pickle", "data": "gASVAAAA"},
        {"no": "tag"},
        {"$": ["int"]},
        2**80,
        float("nan"),
        b"raw",
    ],
    ids=str,
)
def test_data_that_encode_does_not_write_is_refused(data: object) -> None:
    with pytest.raises(BadData):
        decode(data)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda x: (
            st.lists(x)
            | st.dictionaries(st.sampled_from(["$", "hex", "items", "text", "type", "int", "dict"]) | st.text(), x)
        ),
    )
)
def test_any_json_is_either_read_or_refused(data: object) -> None:
    with suppress(BadData):
        shown(decode(data))


def test_numbers_are_shown_for_people() -> None:
    assert shown(93_595_648) == "93,595,648"
    assert shown([1000, 2000]) == "[1000, 2000]"
    assert shown(2**4000).startswith("an integer of 4,001 bits")
    assert shown("x" * 500).endswith("…") and len(shown("x" * 500)) == 300
