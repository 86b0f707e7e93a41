"""Records, spans and views."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xinfer_lab.device.records import (
    DTYPE_BYTES,
    HOST,
    RECORD_TYPES,
    Copy,
    Free,
    HostWait,
    Span,
    Transition,
    View,
    queue_of,
    with_call,
)

spans = st.builds(Span, st.sampled_from("ab"), st.integers(0, 20), st.integers(0, 20))


@given(spans, spans)
def test_spans_overlap_exactly_when_they_share_a_byte(one, two):
    def bytes_of(span):
        return {(span.buffer, place) for place in range(span.offset, span.end)}

    shared = bool(bytes_of(one) & bytes_of(two))
    if one.size and two.size:
        assert one.overlaps(two) == two.overlaps(one) == shared


def test_a_span_reads_as_a_range_of_its_buffer():
    assert str(Span("slot", 256, 128)) == "slot[256:384]"


@pytest.mark.parametrize(("dtype", "size"), DTYPE_BYTES.items())
def test_the_sizes_of_dtypes_are_those_of_torch(dtype, size):
    import torch

    assert getattr(torch, dtype).itemsize == size
    assert View("b", 8, (3, 5), dtype).span == Span("b", 8, 15 * size)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.sampled_from(sorted(DTYPE_BYTES)), st.data())
def test_rows_of_a_view_are_the_bytes_of_these_rows(shape, dtype, data):
    view = View("b", 512, tuple(shape), dtype)
    start = data.draw(st.integers(0, shape[0]))
    stop = data.draw(st.integers(start, shape[0]))
    row = view.nbytes // shape[0]
    assert view.rows(start, stop).span == Span("b", 512 + start * row, (stop - start) * row)
    assert view.rows(start, stop).shape == (stop - start, *shape[1:])


@pytest.mark.parametrize(("start", "stop"), [(-1, 1), (2, 1), (0, 4)])
def test_rows_outside_of_a_view_are_refused(start, stop):
    with pytest.raises(ValueError, match="3 rows"):
        View("b", 0, (3, 2), "float32").rows(start, stop)


def test_a_view_without_dimensions_has_no_rows():
    with pytest.raises(ValueError, match="no rows"):
        View("b", 0, (), "float32").rows(0, 1)


def test_records_cannot_be_changed():
    record = Free(buffer="b")
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.buffer = "c"


def test_every_record_has_a_name_of_its_own():
    assert all(kind.op == op for op, kind in RECORD_TYPES.items())


def test_the_host_executes_what_has_no_queue():
    assert queue_of(HostWait(fence="f", value=1)) == HOST
    assert queue_of(Transition(queue="copy", buffer="b", before="COMMON", after="COPY_DEST", call=1)) == "copy"


def test_only_commands_of_a_queue_belong_to_a_call():
    copy = Copy(queue="copy", dst=Span("a", 0, 1), src=Span("b", 0, 1), call=0)
    assert with_call(copy, 7) == dataclasses.replace(copy, call=7)
    free = Free(buffer="a")
    assert with_call(free, 7) is free


def test_what_is_given_back_when_a_block_breaks_off_is_nobodys_but_the_line_of_that_block():
    from xinfer_lab.device.emulated import EmulatedDevice
    from xinfer_lab.device.rollback import all_or_nothing

    device = EmulatedDevice()
    with pytest.raises(KeyError), all_or_nothing(device):
        device.create_buffer(256, "gone")
        raise KeyError
    (free,) = (record for record in device.stream if isinstance(record, Free))
    assert __file__.rpartition("/")[2] in free.where
