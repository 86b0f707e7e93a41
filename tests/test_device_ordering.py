"""`Ordering`: what completes before what, by the fences alone."""

from dataclasses import replace

import pytest

from tests.device_streams import Script
from xinfer_lab.device.errors import FenceError
from xinfer_lab.device.ordering import Ordering
from xinfer_lab.device.records import Signal, Wait


def test_a_queue_works_its_commands_off_in_order():
    s = Script()
    first, second = s.copy("copy", "a", "b"), s.copy("copy", "c", "d")
    order = Ordering(s.records)
    assert order.before(first, second)
    assert not order.before(second, first)
    assert not order.concurrent(first, second)


def test_two_queues_without_a_fence_are_concurrent():
    s = Script()
    first, second = s.copy("copy", "a", "b"), s.use(reads="a")
    assert Ordering(s.records).concurrent(first, second)


def test_nothing_is_before_or_concurrent_with_itself():
    s = Script()
    only = s.copy("copy", "a", "b")
    order = Ordering(s.records)
    assert not order.before(only, only)
    assert not order.concurrent(only, only)


def test_a_signal_orders_what_came_before_it_with_what_comes_after_the_wait():
    s = Script()
    early = s.copy("copy", "a", "b")
    signal = s.signal("copy", "copied", 1)
    late = s.copy("copy", "c", "d")
    loose = s.use(reads="c")
    wait = s.wait("direct", "copied", 1)
    reader = s.use(reads="a")
    order = Ordering(s.records)
    assert order.before(early, reader)
    assert order.before(signal, wait)
    assert order.concurrent(late, reader)
    assert order.concurrent(early, loose)


def test_a_wait_is_released_by_the_first_signal_that_reaches_its_value():
    s = Script()
    one = s.copy("copy", "a", "b")
    s.signal("copy", "copied", 2)
    two = s.copy("copy", "c", "d")
    s.signal("copy", "copied", 5)
    s.wait("direct", "copied", 1)
    after_one = s.use(reads="a")
    s.wait("direct", "copied", 3)
    after_two = s.use(reads="c")
    order = Ordering(s.records)
    assert order.before(one, after_one)
    assert order.concurrent(two, after_one)
    assert order.before(two, after_two)


def test_order_passes_through_a_third_queue():
    s = Script()
    first = s.copy("copy", "a", "b")
    s.signal("copy", "copied", 1)
    s.wait("direct", "copied", 1)
    s.signal("direct", "done", 1)
    s.wait("back", "done", 1)
    last = s.copy("back", "c", "d")
    assert Ordering(s.records).before(first, last)


def test_the_host_orders_what_it_submits_after_its_own_wait():
    s = Script()
    first = s.copy("copy", "a", "b")
    s.signal("copy", "copied", 1)
    loose = s.use(reads="a")
    s.host_wait("copied", 1)
    ordered = s.use(reads="a")
    order = Ordering(s.records)
    assert order.concurrent(first, loose)
    assert order.before(first, ordered)


def test_a_queue_command_comes_after_all_that_the_host_did_before_it_but_not_the_other_way_round():
    s = Script()
    write = s.write("staging")
    copy = s.copy("copy", "a", "staging")
    rewrite = s.write("staging")
    order = Ordering(s.records)
    assert order.before(write, copy)
    assert order.concurrent(copy, rewrite)


def test_submission_alone_does_not_order_one_queue_after_another():
    # The host submits to one queue, does something itself, submits to the other: it never waited, so nothing did.
    s = Script()
    copy = s.copy("copy", "a", "staging")
    s.write("other")
    reader = s.use(reads="a")
    assert Ordering(s.records).concurrent(copy, reader)


def test_a_queue_that_appears_late_is_after_what_the_host_has_waited_for():
    s = Script()
    first = s.copy("copy", "a", "b")
    s.signal("copy", "copied", 1)
    s.host_wait("copied", 1)
    late = s.copy("back", "c", "a")
    order = Ordering(s.records)
    assert order.before(first, late)
    assert not order.before(late, first)


def test_a_wait_for_zero_orders_nothing():
    s = Script()
    first = s.copy("copy", "a", "b")
    s.signal("copy", "copied", 1)
    s.wait("direct", "copied", 0)
    reader = s.use(reads="a")
    assert Ordering(s.records).concurrent(first, reader)


@pytest.mark.parametrize(("i", "j"), [(-1, 0), (0, 1), (7, 0)])
def test_an_index_outside_of_the_stream_is_refused(i, j):
    s = Script()
    s.copy("copy", "a", "b")
    with pytest.raises(IndexError, match="records 0 to 0"):
        Ordering(s.records).before(i, j)


def test_a_fence_of_two_queues_is_refused():
    records = [Signal(queue="copy", fence="f", value=1), Signal(queue="direct", fence="f", value=2)]
    with pytest.raises(FenceError, match=r"queue 'direct' in record 1.*belongs to queue 'copy'.*record 0"):
        Ordering(records)


@pytest.mark.parametrize("value", [0, 2, 3])
def test_a_fence_value_that_does_not_grow_is_refused(value):
    signal = Signal(queue="copy", fence="f", value=3)
    with pytest.raises(FenceError, match=f"with {value} in record 1.*with 3 before.*Signal with 4 or more"):
        Ordering([signal, replace(signal, value=value), Wait(queue="direct", fence="f", value=3)])


def test_a_streamed_layer_overlaps_with_the_layers_between():
    # Pool of 2: the upload of layer 2 may start when layer 0 is done, and must not be held up by layer 1.
    s = Script()
    uploads, computes = [], []
    for layer in range(3):
        if layer >= 2:
            s.wait("copy", "done", layer - 1)
        uploads.append(s.copy("copy", f"slot{layer % 2}", f"staging{layer}"))
        s.signal("copy", "copied", layer + 1)
        if layer >= 1:
            s.wait("direct", "copied", layer)
            computes.append(s.use(reads=f"slot{(layer - 1) % 2}"))
            s.signal("direct", "done", layer)
    s.wait("direct", "copied", 2)
    order = Ordering(s.records)
    assert order.before(computes[0], uploads[2])
    assert order.concurrent(computes[1], uploads[2])
