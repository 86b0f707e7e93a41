import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.views.examples import empty, many, one_event, stream_layers, zero_length
from xinfer_lab.device.timeline import MemorySample, Timeline, TimelineEvent
from xinfer_lab.views.slots import slots_of
from xinfer_lab.views.timeline_text import timeline_text, timelines_text


def _row(shown, lane):
    return next(line.split("│", 1)[1] for line in shown.splitlines() if line.strip().startswith(f"{lane} │"))


def _example(**options):
    example = stream_layers(**options)
    return example.timeline, slots_of(example.stream)


def test_it_looks_like_this():
    timeline, slots = _example(layers=3, pool=2, compute=0.5e-3)
    assert timeline_text(timeline, 60, slot_of=slots, ascii=False).splitlines() == [
        "3.52 ms · queues overlap for 1.00 ms (28 %) · virtual cloc..",
        "  copy │0██████████████1▓▓▓▓▓▓▓▓▓▓▓▓▓▓2██████████████",
        "direct │···············0██████········1▓▓▓▓▓▓········2██████",
        "  host │░···················································",
        "memory │████████████████████████████████████████████████████",
        "       └┴──────────────┴──────────────┴─────────────┴───────",
        "        0 ms           1              2             3",
        "0-9: layer   █ slot 0   ▓ slot 1   ░ no slot   · waits",
        "memory up to 11.00 MiB",
    ]


def test_it_looks_like_this_in_ascii():
    timeline, slots = _example(layers=3, pool=2, compute=0.5e-3)
    assert timeline_text(timeline, 60, slot_of=slots, ascii=True).splitlines()[1:5] == [
        "  copy |0##############1==============2##############",
        "direct |...............0######........1======........2######",
        "  host |:...................................................",
        "memory |9999999999999999999999999999999999999999999999999999",
    ]


def test_each_layer_is_named_once_a_lane_in_its_order():
    timeline, slots = _example(layers=6, pool=2, compute=0.7e-3)
    shown = timeline_text(timeline, 80, slot_of=slots, ascii=False)
    for lane in ("copy", "direct"):
        assert [c for c in _row(shown, lane) if c.isdigit()] == list("012345")


def test_layers_beyond_nine_have_letters():
    timeline, slots = _example(layers=12, pool=2)
    shown = timeline_text(timeline, 100, slot_of=slots, ascii=False)
    assert [c for c in _row(shown, "copy") if c.isalnum()] == list("0123456789ab")
    assert "a = 10" in shown


def test_slots_have_their_own_shade_and_waits_their_dots():
    timeline, slots = _example(layers=4, pool=2, compute=0.5e-3)
    shown = timeline_text(timeline, 80, slot_of=slots, ascii=False)
    copy, direct = _row(shown, "copy"), _row(shown, "direct")
    assert set(copy[copy.index("0") + 1 : copy.index("1")]) == {"█"} and set(
        copy[copy.index("1") + 1 : copy.index("2")]
    ) == {"▓"}
    assert "·" in direct and "█ slot 0" in shown and "▓ slot 1" in shown and "· waits" in shown


def test_columns_are_in_proportion_to_time():
    timeline = Timeline(
        ("direct",),
        (
            TimelineEvent(0, "direct", "dispatch", "layer 0", 0.0, 1.0),
            TimelineEvent(1, "direct", "dispatch", "layer 1", 3.0, 4.0),
        ),
        (),
        (),
        "c",
    )
    row = _row(timeline_text(timeline, 88, ascii=False), "direct")
    assert (row.index("0"), row.index("1")) == (0, 60) and row[20:60].strip() == "" and len(row) == 80


def test_several_timelines_share_one_scale():
    (serial, a), (streaming, b) = _example(serial=True), _example()
    shown = timelines_text([("serial", serial), ("streaming", streaming)], 80, slot_of=[a, b], ascii=False)
    rows = [line.split("│")[1] for line in shown.splitlines() if line.startswith("direct")]
    assert len(rows[1]) / len(rows[0]) == pytest.approx(streaming.duration / serial.duration, abs=0.03)
    assert (
        shown.splitlines()[-1]
        == f"streaming takes 7.02 ms, {streaming.duration / serial.duration:.2f} of the time of serial"
    )
    assert shown.count("└") == 1


def test_the_memory_line_follows_the_curve():
    timeline = Timeline(
        ("direct",),
        one_event(0.0, 4.0).events,
        (),
        (MemorySample(0.0, 0), MemorySample(1.0, 40), MemorySample(2.0, 80)),
        "c",
    )
    row = _row(timeline_text(timeline, 88, ascii=False), "memory")
    assert (row[10], row[30], row[50]) == (" ", "▄", "█")
    assert "memory up to 80 B" in timeline_text(timeline, 88, ascii=False)


def test_a_little_memory_is_never_shown_as_none():
    timeline = Timeline(
        ("direct",), one_event(0.0, 2.0).events, (), (MemorySample(0.0, 1), MemorySample(1.0, 10**9)), "c"
    )
    assert _row(timeline_text(timeline, 88, ascii=False), "memory")[:40] == "▁" * 40


@pytest.mark.parametrize("width", [40, 64, 80, 200])
@pytest.mark.parametrize("ascii", [True, False])
@pytest.mark.parametrize(
    "timeline",
    [empty(), one_event(), one_event(0, 1e-9), one_event(0, 1e3), zero_length(), many(), stream_layers().timeline],
)
def test_no_line_is_longer_than_the_terminal(timeline, ascii, width):
    shown = timeline_text(timeline, width, ascii=ascii)
    assert max(map(len, shown.splitlines())) <= width
    assert shown.isascii() or not ascii


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_names_cannot_break_the_lines(lane, label, clock):
    event = TimelineEvent(0, lane, "dispatch", label, 0.0, 1e-6)
    for ascii in (True, False):
        shown = timelines_text([(label, Timeline((lane,), (event,), (), (), clock))], 60, ascii=ascii)
        lines = shown.split("\n")
        assert all(len(line) <= 60 and line.isprintable() for line in lines)
        assert shown.isascii() or not ascii


@pytest.mark.parametrize(
    ("encoding", "blocks"), [("utf-8", True), ("ascii", False), ("latin-1", False), ("cp1252", False)]
)
def test_block_characters_only_where_the_terminal_has_them(monkeypatch, encoding, blocks):
    timeline, _ = _example()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    shown = timeline_text(timeline)
    monkeypatch.undo()
    assert ("│" in shown) == blocks and shown.isascii() != blocks


def test_crowded_columns_carry_no_letters():
    row = _row(timeline_text(many(5000), 80, ascii=False), "copy")
    assert not [c for c in row if c.isalnum()]


def test_too_narrow_a_terminal_is_refused():
    with pytest.raises(ValueError, match="at least 40 columns"):
        timeline_text(one_event(), 30)


def test_slots_for_each_timeline_or_for_none():
    with pytest.raises(ValueError, match="1 sources for 2 timelines"):
        timelines_text([("a", one_event()), ("b", one_event())], slot_of=[None])


def test_work_shorter_than_a_column_still_has_its_layers_letter():
    events = (
        TimelineEvent(0, "direct", "wait", "", 0.0, 10.0),
        TimelineEvent(1, "direct", "dispatch", "layer 0", 10.0, 10.001),
        TimelineEvent(2, "direct", "wait", "", 10.001, 20.0),
        TimelineEvent(3, "direct", "dispatch", "layer 1", 20.0, 20.001),
    )
    row = _row(timeline_text(Timeline(("direct",), events, (), (), "c"), 80, ascii=False), "direct")
    assert [char for char in row if char.isalnum()] == ["0", "1"]


def test_what_is_in_no_slot_has_a_glyph_of_its_own_in_the_legend():
    events = (TimelineEvent(0, "direct", "dispatch", "embed", 0.0, 1.0),)
    shown = timeline_text(Timeline(("direct",), events, (), (), "c"), 80, ascii=False)
    assert "░ no slot" in shown and "░" in _row(shown, "direct")
    assert "no slot" not in timeline_text(Timeline(("direct",), events, (), (), "c"), 80, slot_of={0: 1}, ascii=False)
