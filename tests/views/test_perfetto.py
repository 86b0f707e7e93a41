import copy
import json
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.views.examples import empty, many, one_event, stream_layers, zero_length
from tests.views.perfetto_rules import bound_slice, problems
from xinfer_lab.device.timeline import Flow, MemorySample, Timeline, TimelineEvent
from xinfer_lab.views.perfetto import perfetto_json, write_perfetto


def _events(trace, phase):
    return [event for event in trace["traceEvents"] if event["ph"] == phase]


@pytest.mark.parametrize(
    "timeline",
    [
        empty(),
        one_event(),
        one_event(1e-9, 2e-9),
        one_event(0, 1e3),
        zero_length(),
        many(),
        stream_layers(layers=7, pool=3, steps=2).timeline,
    ],
)
def test_perfetto_has_nothing_to_warn_of(timeline):
    trace = perfetto_json(timeline)
    assert problems(trace) == []
    assert trace["otherData"]["fence edges left out"] == 0


def test_each_lane_is_a_named_thread_in_order():
    trace = perfetto_json(stream_layers().timeline)
    names = {e["tid"]: e["args"]["name"] for e in _events(trace, "M") if e["name"] == "thread_name"}
    order = {e["tid"]: e["args"]["sort_index"] for e in _events(trace, "M") if e["name"] == "thread_sort_index"}
    assert [names[tid] for tid in sorted(names, key=order.get)] == ["copy", "direct", "host"]
    assert [e["args"]["name"] for e in _events(trace, "M") if e["name"] == "process_name"] == [
        "xinfer-lab: virtual clock, lab, T_comp / T_trans = 1"
    ]


def test_events_carry_their_times_record_bytes_slot_and_source_line():
    example = stream_layers(layers=3)
    example.stream.records[1] = replace(example.stream[1], where="lab3.py:17")
    slices = {e["args"]["record"]: e for e in _events(perfetto_json(example.timeline, example.stream), "X")}
    assert len(slices) == len(example.timeline.events)
    for event in example.timeline.events:
        seen = slices[event.record]
        assert seen["ts"] == pytest.approx(event.start * 1e6, abs=1e-3)
        assert seen["dur"] == pytest.approx(event.duration * 1e6, abs=1.1e-3)
        assert (seen["name"], seen["cat"]) == (event.label, event.kind)
    assert slices[1]["args"] == {"record": 1, "bytes": 4 * 2**20, "slot": 0, "where": "lab3.py:17"}


def test_an_edge_leaves_the_event_before_the_signal_and_enters_the_wait_that_it_ends():
    example = stream_layers(layers=5, pool=2, compute=2e-3)
    trace = perfetto_json(example.timeline)
    starts, ends = _events(trace, "s"), _events(trace, "f")
    assert len(starts) == len(ends) == len(example.timeline.flows)
    ends_by_id = {e["id"]: e for e in ends}
    events = example.timeline.events
    for start, flow in zip(sorted(starts, key=lambda e: e["id"]), example.timeline.flows, strict=True):
        before = max(e.record for e in events if e.lane == flow.signal_lane and e.record < flow.signal)
        after = min(e.record for e in events if e.lane == flow.wait_lane and e.record >= flow.wait)
        assert bound_slice(trace, start)["args"]["record"] == before
        assert bound_slice(trace, ends_by_id[start["id"]])["args"]["record"] == after
        assert start["name"] == ends_by_id[start["id"]]["name"] and start["ts"] <= ends_by_id[start["id"]]["ts"]


def test_a_signal_before_all_events_and_a_wait_after_all_get_slices_of_their_own():
    events = (TimelineEvent(5, "copy", "copy", "c", 1e-3, 2e-3), TimelineEvent(6, "direct", "dispatch", "d", 0.0, 1e-3))
    flows = (Flow("early", 1, 0, 0.0, "copy", 1, 0.0, "direct"), Flow("late", 1, 7, 2e-3, "copy", 8, 2e-3, "direct"))
    trace = perfetto_json(Timeline(("copy", "direct"), events, flows, (), "c"))
    assert problems(trace) == []
    own = [(e["name"], e["args"]["record"], e["dur"]) for e in _events(trace, "X") if e["cat"] in ("signal", "wait")]
    assert own == [("signal early = 1", 0, 0.001), ("wait late = 1", 8, 0.001)]


def test_an_edge_that_a_measured_clock_has_running_backwards_is_counted_not_drawn():
    events = (TimelineEvent(0, "copy", "copy", "c", 5e-3, 6e-3), TimelineEvent(2, "direct", "wait", "w", 0.0, 1e-3))
    trace = perfetto_json(
        Timeline(("copy", "direct"), events, (Flow("f", 1, 1, 6e-3, "copy", 2, 1e-3, "direct"),), (), "GPU")
    )
    assert problems(trace) == [] and not _events(trace, "s") and not _events(trace, "f")
    assert trace["otherData"]["fence edges left out"] == 1


def test_memory_is_a_counter():
    timeline = replace(one_event(), memory=(MemorySample(0.0, 7), MemorySample(5e-4, 9)))
    assert [(e["name"], e["ts"], e["args"]) for e in _events(perfetto_json(timeline), "C")] == [
        ("device memory", 0.0, {"bytes": 7}),
        ("device memory", 500.0, {"bytes": 9}),
    ]


def test_overlapping_events_of_a_lane_take_threads_of_their_own():
    events = tuple(TimelineEvent(i, "copy", "copy", "c", i * 1e-3, i * 1e-3 + 2.5e-3) for i in range(6))
    trace = perfetto_json(Timeline(("copy", "copy (2)"), events, (), (), "c"))
    assert problems(trace) == []
    names = [e["args"]["name"] for e in _events(trace, "M") if e["name"] == "thread_name"]
    assert names == ["copy", "copy (2)", "copy (3)", "copy (2)"]
    assert len({e["tid"] for e in _events(trace, "X")}) == 3


@settings(max_examples=60)
@given(st.lists(st.integers(1, 10**7), min_size=1, max_size=40), st.floats(0, 1e3))
def test_neighbours_never_overlap_whatever_their_times_round_to(lengths, begin):
    at, events = begin, []
    for i, length in enumerate(lengths):
        end = at + length * 1.000123e-9
        events.append(TimelineEvent(i, "copy", "copy", "c", at, end))
        at = end
    trace = perfetto_json(Timeline(("copy",), tuple(events), (), (), "c"))
    assert problems(trace) == [] and len({e["tid"] for e in _events(trace, "X")}) == 1


@given(st.integers(0, 2**43))
@example(1001)
def test_times_come_back_to_the_nanosecond_from_a_reader_that_cuts_off(nanoseconds):
    (event,) = _events(perfetto_json(one_event(0.0, nanoseconds * 1e-9)), "X")
    assert int(event["dur"] * 1000) == round(nanoseconds * 1e-9 * 1e9)


_BROKEN = {
    "lies in no slice": lambda flow, trace: flow.update(ts=flow["ts"] + 10**9),
    "has ['s', 's', 'f']": lambda flow, trace: trace["traceEvents"].insert(
        trace["traceEvents"].index(flow), dict(flow)
    ),
    "has ['s']": lambda flow, trace: trace["traceEvents"].remove(
        next(e for e in _events(trace, "f") if e["id"] == flow["id"])
    ),
    "outlasts": lambda flow, trace: _events(trace, "X")[0].update(dur=20.5),
    "not in order": lambda flow, trace: trace["traceEvents"].append({**flow, "ts": 0.0}),
    "has no name": lambda flow, trace: trace["traceEvents"].pop(0),
}


@pytest.mark.parametrize("what", _BROKEN)
def test_the_rules_of_these_tests_catch_what_they_are_for(what):
    trace = copy.deepcopy(perfetto_json(stream_layers().timeline))
    _BROKEN[what](_events(trace, "s")[0], trace)
    assert any(what in problem for problem in problems(trace))


def test_a_file_is_written_as_json(tmp_path):
    timeline = one_event(label="“layer” 0 µ")
    write_perfetto(tmp_path / "trace.json", timeline)
    assert json.loads((tmp_path / "trace.json").read_text(encoding="utf-8")) == perfetto_json(timeline)
