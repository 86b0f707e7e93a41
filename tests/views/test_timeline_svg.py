import math
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.views.examples import MIB, empty, many, one_event, stream_layers, zero_length
from tests.views.xml_rules import SVG, of_class, parsed, words
from xinfer_lab.device.timeline import Flow, MemorySample, Timeline, TimelineEvent
from xinfer_lab.views.hazard_marks import HazardMark
from xinfer_lab.views.slots import slots_of
from xinfer_lab.views.timeline_svg import timeline_svg

NASTY = "</text><script>alert(1)</script>&\"']]>\x00\ue000 layer 3"


def _cells(picture, column):
    return [row[picture.columns.index(column)] for row in picture.table]


def test_the_picture_shows_lanes_layers_and_axis():
    example = stream_layers(layers=6, pool=2)
    shown = words(parsed(timeline_svg(example.timeline, title="Six layers", slot_of=slots_of(example.stream))))
    assert shown[0] == "Six layers"
    assert {"copy", "direct", "host", "device memory", "slot 0", "slot 1", "waits for a fence"} <= set(shown)
    assert [w for w in shown if re.fullmatch(r"upload layer \d", w)] == [f"upload layer {i}" for i in range(6)]
    assert "0 ms" in shown and "6" in shown


def test_alt_text_says_the_true_figures():
    # By hand: copies 0-1, 1-2, 2-3 ms; kernels 1-1.5, 2-2.5, 3-3.5 ms, each after its copy. Both work for 2 x 0.5 ms.
    events = [TimelineEvent(i, "copy", "copy", f"upload layer {i}", i * 1e-3, (i + 1) * 1e-3) for i in range(3)]
    events += [
        TimelineEvent(10 + i, "direct", "dispatch", f"layer {i}", (i + 1) * 1e-3, (i + 1.5) * 1e-3) for i in range(3)
    ]
    events.insert(3, TimelineEvent(9, "direct", "wait", "wait f >= 1", 0.0, 1e-3))
    flow = Flow("f", 1, 5, 1e-3, "copy", 9, 1e-3, "direct")
    timeline = Timeline(
        ("copy", "direct"), tuple(events), (flow,), (MemorySample(0.0, 3 * MIB), MemorySample(1e-3, MIB)), "a clock"
    )
    alt = timeline_svg(timeline, title="By hand", budget=4 * MIB).alt
    assert alt.startswith("By hand. 7 events in 3.50 ms on a clock.")
    assert "copy is busy for 3.00 ms (86 %), direct is busy for 1.50 ms (43 %)" in alt
    assert "at least two queues work at once for 1.00 ms (29 %)" in alt
    assert "direct stands still for 1.00 ms from 0 s on for f to reach 1, before layer 0" in alt
    assert "Device memory peaks at 3.00 MiB, within the budget of 4.00 MiB." in alt


def test_alt_text_says_when_nothing_overlaps_and_when_memory_is_over_budget():
    serial = stream_layers(serial=True)
    alt = timeline_svg(serial.timeline, title="Serial", budget=MIB).alt
    assert "no two queues ever work at once" in alt and "over the budget of 1.00 MiB" in alt


def test_the_table_has_a_row_for_each_event():
    example = stream_layers(layers=5, pool=3, steps=2)
    slot = slots_of(example.stream)
    picture = timeline_svg(example.timeline, title="t", slot_of=slot)
    events = example.timeline.events
    assert _cells(picture, "record") == [str(e.record) for e in events]
    assert _cells(picture, "lane") == [e.lane for e in events]
    assert _cells(picture, "label") == [e.label for e in events]
    assert _cells(picture, "slot") == ["" if slot(e.record) is None else str(slot(e.record)) for e in events]
    for column, values in (
        ("start", [e.start for e in events]),
        ("end", [e.end for e in events]),
        ("takes", [e.duration for e in events]),
    ):
        cells = [cell.split(" ") for cell in _cells(picture, column)]
        assert {unit for _, unit in cells} == {"ms"}
        assert [float(number) for number, _ in cells] == pytest.approx([v * 1e3 for v in values], rel=1e-5, abs=1e-9)


def test_the_table_names_the_fence_of_every_edge():
    example = stream_layers(layers=4, pool=2, compute=2e-3)
    cells = _cells(timeline_svg(example.timeline, title="t"), "waits for")
    named = [part for cell in cells if cell for part in cell.split("; ")]
    assert sorted(named) == sorted(f"{f.fence} ≥ {f.value} (record {f.signal})" for f in example.timeline.flows)


def test_every_slot_has_its_pattern_and_every_wait_its_hatching():
    example = stream_layers(layers=9, pool=3)
    picture = timeline_svg(example.timeline, title="t", slot_of=slots_of(example.stream))
    root = parsed(picture)
    fills = [element.get("fill") or "" for element in root.iter()]
    for slot in range(3):
        # Three uploads, three uses, and the key.
        assert sum(fill.endswith(f"-slot{slot})") for fill in fills) == len(of_class(root, f"s{slot}")) == 7
    waits = sum("wait" in e.kind for e in example.timeline.events)
    assert sum(fill.endswith("-hatch)") for fill in fills) == waits + 1 == len(of_class(root, "idle"))


def test_bars_lie_where_their_times_are():
    timeline = Timeline(
        ("direct",),
        (TimelineEvent(0, "direct", "dispatch", "a", 0.0, 1.0), TimelineEvent(1, "direct", "dispatch", "b", 3.0, 4.0)),
        (),
        (),
        "c",
    )
    a, b = of_class(parsed(timeline_svg(timeline, title="t")), "plain")[-2:]
    left, width = float(a.get("x")), float(a.get("width"))
    assert float(b.get("x")) - left == pytest.approx(3 * (width + 1), abs=0.1)
    assert float(b.get("width")) == pytest.approx(width, abs=0.02)


def test_a_fence_edge_is_an_arrow_from_signal_to_wait():
    example = stream_layers(layers=3, pool=2)
    root = parsed(timeline_svg(example.timeline, title="t"))
    arrows = [e for e in of_class(root, "flow") if len(e)]
    assert len(arrows) == len(example.timeline.flows)
    assert all("url(#" in arrow.get("marker-end") for arrow in arrows)
    told = [arrow[0].text for arrow in arrows]
    for flow in example.timeline.flows:
        assert f"{flow.fence} reaches {flow.value} (record {flow.signal}) and releases record {flow.wait}" in told


def test_a_hazard_marks_both_bars_with_its_number():
    example = stream_layers(layers=4, pool=2)
    kernel = next(e for e in example.timeline.events if e.kind == "dispatch")
    copy = [e for e in example.timeline.events if e.kind == "copy"][2]
    marks = [HazardMark("write-after-read", kernel.record, copy.record, "layer 2 overwrites layer 0 & more")]
    picture = timeline_svg(example.timeline, title="t", hazards=marks)
    root = parsed(picture)
    # Two bars and the key.
    assert len(of_class(root, "badge")) == 3 and [t.text for t in of_class(root, "on-badge")] == ["1"] * 3
    # Two frames and the line that joins them.
    assert len(of_class(root, "hazard")) == 3
    assert f"1 hazard: 1 write-after-read (records {kernel.record} and {copy.record})" in picture.alt
    assert (
        picture.notes[-1] == f"Hazard 1 (records {kernel.record} and {copy.record}): layer 2 overwrites layer 0 & more"
    )
    marked = {row[0] for row in picture.table if row[-1] == "1 write-after-read"}
    assert marked == {str(kernel.record), str(copy.record)}


def test_a_hazard_between_records_that_are_no_events_is_told_all_the_same():
    picture = timeline_svg(one_event(), title="t", hazards=[HazardMark("use-after-free", 70, 71, "freed too early")])
    assert not [e for e in of_class(parsed(picture), "hazard")]
    assert picture.notes == ("Hazard 1 (records 70 and 71): freed too early",)


def test_a_budget_is_a_line_within_reach_and_words_beyond():
    timeline = replace(one_event(), memory=(MemorySample(0.0, 4 * MIB),))
    near = parsed(timeline_svg(timeline, title="t", budget=5 * MIB))
    far = parsed(timeline_svg(timeline, title="t", budget=500 * MIB))
    assert len(of_class(near, "budget")) == 1 and not of_class(far, "budget")
    assert "budget 5.00 MiB" in words(near) and "budget 500.00 MiB" in words(far)
    over = words(parsed(timeline_svg(timeline, title="t", budget=MIB)))
    assert "over by 3.00 MiB" in over


def test_the_memory_curve_keeps_its_peak_however_crowded():
    memory = tuple(MemorySample(i * 1e-6, MIB * (9 if i == 2345 else 1)) for i in range(5000))
    timeline = replace(one_event(0.0, 5e-3), memory=memory)
    root = parsed(timeline_svg(timeline, title="t"))
    heights = {float(y) for y in re.findall(r"V([\d.]+)", of_class(root, "curve")[0].get("d"))}
    assert len(heights) == 2 and "peak 9.00 MiB" in words(root)


@pytest.mark.parametrize(
    "timeline",
    [empty(), one_event(), one_event(1e-9, 2e-9), one_event(0.0, 1e3), one_event(999.0, 1e3), zero_length(), many()],
)
def test_ugly_timelines_can_be_drawn(timeline):
    picture = timeline_svg(timeline, title="t")
    parsed(picture)
    assert len(picture.table) == len(timeline.events)


def test_nothing_says_that_there_is_nothing():
    picture = timeline_svg(empty(), title="Nothing")
    assert picture.alt == "Nothing. A timeline without any events." and "no events" in words(parsed(picture))


def test_5000_events_stay_small_and_say_what_is_left_out():
    picture = timeline_svg(many(5000), title="t")
    assert len(picture.svg) < 100_000
    assert any("fence arrows are not drawn" in note for note in picture.notes)
    assert any("too short to be told apart" in note for note in picture.notes)


def test_an_excerpt_of_a_long_timeline_shows_its_labels():
    timeline = many(5000)
    whole = words(parsed(timeline_svg(timeline, title="t")))
    picture = timeline_svg(timeline, title="t", start=0.1, end=0.101)
    part = words(parsed(picture))
    assert not [w for w in whole if w.startswith("layer")] and [w for w in part if w.startswith("layer")]
    assert "Excerpt from 100 ms to 101 ms of 500 ms." in picture.alt
    expected = [e.record for e in timeline.events if e.start < 0.101 and e.end > 0.1]
    assert [int(row[0]) for row in picture.table] == expected


def test_arrows_of_an_excerpt_stay_within_the_axis():
    example = stream_layers(layers=24, pool=12, compute=1.4e-3)
    root = parsed(timeline_svg(example.timeline, title="t", start=5e-3, end=14e-3))
    (group,) = [e for e in root.iter(f"{SVG}g") if e.get("clip-path")]
    assert len(of_class(root, "flow")) == len(of_class(group, "flow")) + 1 > 5
    area = next(e for e in root.iter(f"{SVG}clipPath") if f"url(#{e.get('id')})" == group.get("clip-path"))[0]
    band = next(e for e in of_class(root, "band") if e.get("height") == "38")
    assert float(area.get("x")) == pytest.approx(float(band.get("x")), abs=10)
    assert float(area.get("width")) == pytest.approx(float(band.get("width")), abs=20)


def test_a_label_that_does_not_fit_is_shortened_then_dropped():
    long = one_event(label="a label of very many words " * 20)
    shown = words(parsed(timeline_svg(long, title="t")))
    assert any(w.startswith("a label of very many") and w.endswith("…") for w in shown)
    narrow = replace(long, events=(*long.events, TimelineEvent(1, "direct", "dispatch", "layer 1", 1.0, 1.001)))
    assert not [w for w in words(parsed(timeline_svg(narrow, title="t"))) if "label" in w]


def test_copies_of_one_upload_share_a_label():
    example = stream_layers(layers=2, pool=2, tensors=4)
    shown = words(parsed(timeline_svg(example.timeline, title="t", slot_of=slots_of(example.stream))))
    assert [w for w in shown if w.startswith("upload")] == ["upload layer 0", "upload layer 1"]


def test_markup_in_names_stays_words():
    timeline = Timeline(
        (NASTY,), (TimelineEvent(0, NASTY, "dispatch", NASTY, 0.0, 1.0),), (), (MemorySample(0.0, 1),), NASTY
    )
    marks = [HazardMark(NASTY, 0, 0, NASTY)]
    picture = timeline_svg(timeline, title=NASTY, hazards=marks)
    root = parsed(picture)
    assert any("alert(1)" in w for w in words(root))
    assert "<script" not in picture.svg and "<script" not in picture.html()


def test_the_same_timeline_gives_the_same_bytes():
    example = stream_layers(layers=9, pool=4, steps=2)
    one, two = (timeline_svg(example.timeline, title="t", slot_of=slots_of(example.stream)) for _ in range(2))
    assert one == two and one.svg == two.svg


def test_pictures_on_one_page_do_not_share_ids():
    example = stream_layers()
    ids = [
        {
            e.get("id")
            for e in parsed(timeline_svg(example.timeline, title=title, slot_of=slots_of(example.stream))).iter()
        }
        - {None}
        for title in ("one", "two")
    ]
    assert ids[0].isdisjoint(ids[1])


@pytest.mark.parametrize("width", [320, 500, 800, 1280])
def test_everything_lies_within_the_width(width):
    example = stream_layers(layers=12, pool=6)
    picture = timeline_svg(example.timeline, title="t" * 80, slot_of=slots_of(example.stream), budget=MIB, width=width)
    root = parsed(picture)
    assert root.get("width") == str(width)
    for box in root.iter(f"{SVG}rect"):
        assert float(box.get("x", 0)) >= -1 and float(box.get("x", 0)) + float(box.get("width")) <= width + 1


def test_too_narrow_a_picture_is_refused():
    with pytest.raises(ValueError, match="at least 320 pixels"):
        timeline_svg(one_event(), title="t", width=200)


@pytest.mark.parametrize("end", [math.inf, math.nan, -1.0])
def test_an_event_without_an_end_is_refused_by_name(end):
    with pytest.raises(ValueError, match=r"record 0 \(layer 0\) lasts from 0.0 to"):
        timeline_svg(one_event(0.0, end), title="t")


_TIMES = st.one_of(st.just(0.0), st.floats(1e-9, 1e3))
_EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["copy", "direct", "host"]),
        st.sampled_from(["copy", "dispatch", "wait", "host_wait"]),
        st.text(max_size=12),
        _TIMES,
        _TIMES,
    ),
    max_size=12,
)


@settings(max_examples=60)
@given(
    _EVENTS,
    st.text(max_size=20),
    st.lists(st.tuples(_TIMES, st.integers(0, 2**40)), max_size=8),
    st.none() | st.integers(1, 2**40),
)
def test_any_timeline_gives_a_sound_picture(items, title, samples, budget):
    events = tuple(TimelineEvent(i, *head, start, start + length) for i, (*head, start, length) in enumerate(items))
    memory = tuple(MemorySample(*sample) for sample in sorted(samples))
    timeline = Timeline(("copy", "direct"), events, (), memory, "clock")
    picture = timeline_svg(timeline, title=title, slot_of=lambda record: record % 5, budget=budget)
    parsed(picture)
    assert len(picture.table) == len(events)
