"""Memory sizes on the command line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xinfer_lab.cli.faults import CommandError
from xinfer_lab.cli.sizes import parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8GiB", 8 * 2**30),
        ("24 GiB", 24 * 2**30),
        ("500MB", 500 * 10**6),
        ("1.5k", 1536),
        ("24g", 24 * 2**30),
        ("2TiB", 2 * 2**40),
        ("0.5 GB", 5 * 10**8),
        ("1048576", 2**20),
        ("100B", 100),
    ],
)
def test_sizes_are_read_as_people_write_them(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "-1GiB", "8XB", "8iB", "1e9", "8 GiB more", "0", "0.1", "nan", "inf"])
def test_what_is_no_size_is_refused_by_what_was_written(text):
    with pytest.raises(CommandError) as refused:
        parse_size(text)
    assert repr(text) in str(refused.value)


@given(st.integers(1, 2**50))
def test_plain_bytes_are_themselves(size):
    assert parse_size(str(size)) == size
