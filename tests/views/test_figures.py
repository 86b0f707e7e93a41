from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.views.examples import empty, stream_layers, zero_length
from xinfer_lab.device.timeline import MemorySample, Timeline, TimelineEvent
from xinfer_lab.views.figures import excerpt, figures, memory_at, overlapped

_EVENT = st.tuples(
    st.sampled_from(["copy", "direct", "third", "host"]),
    st.sampled_from(["copy", "dispatch", "wait", "host_write"]),
    st.integers(0, 50),
    st.integers(0, 20),
)


def _timeline(items):
    events = tuple(
        TimelineEvent(i, lane, kind, "", float(start), float(start + length))
        for i, (lane, kind, start, length) in enumerate(items)
    )
    return Timeline(("copy", "direct", "third", "host"), events, (), (), "test")


@given(st.lists(_EVENT, max_size=30))
def test_overlap_is_the_time_in_which_two_queues_work(items):
    timeline = _timeline(items)
    seconds = 0
    for at in range(80):
        working = {
            lane
            for lane, kind, start, length in items
            if kind in ("copy", "dispatch") and lane != "host" and start <= at < start + length
        }
        seconds += len(working) >= 2
    assert overlapped(timeline) == seconds


@given(st.lists(_EVENT, max_size=30))
def test_a_lane_is_busy_once_however_many_events_overlap(items):
    for lane, seconds in figures(_timeline(items)).busy:
        working = [
            any(n == lane and k in ("copy", "dispatch") and s <= at < s + d for n, k, s, d in items) for at in range(80)
        ]
        assert seconds == sum(working)


def test_the_longest_wait_of_a_queue_is_the_stall():
    example = stream_layers(compute=0.4e-3)
    found = figures(example.timeline)
    waits = [e for e in example.timeline.events if e.kind == "wait"]
    assert found.stall == max(waits, key=lambda e: e.duration) and len(waits) > 1
    assert found.stalled == pytest.approx(sum(e.duration for e in waits if e.lane == found.stall.lane))
    assert found.released_by.wait == found.stall.record
    assert found.held_up.record == found.stall.record + 1 and found.held_up.kind == "dispatch"


def test_what_a_stall_holds_up_is_the_next_work_not_the_next_wait():
    events = [("direct", "wait", 0, 5), ("direct", "wait", 5, 2), ("copy", "copy", 0, 7), ("direct", "dispatch", 7, 1)]
    assert figures(_timeline(events)).held_up.record == 3


def test_where_no_queue_waits_the_hosts_wait_is_the_stall():
    timeline = _timeline([("copy", "copy", 0, 5)])
    host = TimelineEvent(1, "host", "host_wait", "", 0.0, 5.0)
    assert figures(replace(timeline, events=(*timeline.events, host))).stall == host


def test_nothing_has_no_figures():
    found = figures(empty())
    assert (found.duration, found.busy, found.overlapped, found.stall) == (0.0, (), 0.0, None)
    assert figures(zero_length()).overlapped == 0


def test_memory_holds_until_the_next_sample():
    timeline = replace(empty(), memory=(MemorySample(1.0, 5), MemorySample(2.0, 3)))
    assert [memory_at(timeline, t) for t in (0.5, 1.0, 1.9, 2.0, 9.0)] == [0, 5, 5, 3, 3]


@given(st.lists(_EVENT, max_size=20), st.integers(0, 40), st.integers(1, 30))
def test_an_excerpt_holds_what_happens_in_its_window(items, start, length):
    timeline, end = _timeline(items), start + length
    cut = excerpt(timeline, float(start), float(end))
    assert all(start <= e.start <= e.end <= end for e in cut.events)
    kept = {e.record for e in cut.events}
    assert kept >= {e.record for e in timeline.events if e.start < end and e.end > start}
    assert not kept & {e.record for e in timeline.events if e.end < start or e.start > end}


def test_excerpts_side_by_side_lose_no_work():
    timeline = stream_layers().timeline
    edges = [i * timeline.duration / 7 for i in range(8)]
    parts = sum(overlapped(excerpt(timeline, a, b)) for a, b in pairwise(edges))
    assert parts == pytest.approx(overlapped(timeline))


def test_an_excerpt_begins_with_the_memory_in_use():
    timeline = stream_layers(pool=2).timeline
    cut = excerpt(timeline, 1e-3, 2e-3)
    assert cut.memory == (MemorySample(1e-3, memory_at(timeline, 1e-3)),)


def test_an_empty_window_is_refused():
    with pytest.raises(ValueError, match="start < end"):
        excerpt(empty(), 1.0, 1.0)
