import pytest

from tests.views.examples import empty, one_event, stream_layers
from tests.views.xml_rules import of_class, parsed, words
from xinfer_lab.views.compare import compare_timelines
from xinfer_lab.views.hazard_marks import HazardMark
from xinfer_lab.views.slots import slots_of
from xinfer_lab.views.timeline_words import COLUMNS


def _both():
    return stream_layers(serial=True), stream_layers()


def test_it_says_which_takes_longer_and_by_how_much():
    serial, streaming = _both()
    picture = compare_timelines(serial.timeline, streaming.timeline, title="Both")
    more = serial.timeline.duration - streaming.timeline.duration
    assert f"yours is {more * 1e3:.2f} ms ({100 * more / streaming.timeline.duration:.0f} %) longer." in picture.alt
    assert "yours is" in compare_timelines(streaming.timeline, serial.timeline, title="Both").alt
    assert "shorter." in compare_timelines(streaming.timeline, serial.timeline, title="Both").alt
    assert ": the same." in compare_timelines(serial.timeline, serial.timeline, title="Both").alt


def test_both_are_on_one_axis():
    short, long = one_event(0.0, 1.0), one_event(0.0, 4.0)
    bars = of_class(parsed(compare_timelines(short, long, title="t")), "plain")[-2:]
    assert [float(bar.get("x")) for bar in bars] == [float(bars[0].get("x"))] * 2
    one, four = (float(bar.get("width")) + 1 for bar in bars)
    assert four == pytest.approx(4 * one, abs=0.1)
    axis = [w for w in words(parsed(compare_timelines(short, long, title="t"))) if w == "0.0 s"]
    assert len(axis) == 1


def test_the_table_has_the_rows_of_both():
    serial, streaming = _both()
    picture = compare_timelines(serial.timeline, streaming.timeline, title="t", names=("mine", "theirs"))
    assert picture.columns == ("timeline", *COLUMNS)
    for name, example in (("mine", serial), ("theirs", streaming)):
        assert [row[1] for row in picture.table if row[0] == name] == [str(e.record) for e in example.timeline.events]


def test_slots_and_hazards_are_shown():
    serial, streaming = _both()
    kernel = next(e for e in serial.timeline.events if e.kind == "dispatch")
    picture = compare_timelines(
        serial.timeline,
        streaming.timeline,
        title="t",
        slot_of=(slots_of(serial.stream), slots_of(streaming.stream)),
        hazards=[HazardMark("read-after-write", kernel.record - 1, kernel.record)],
    )
    shown = words(parsed(picture))
    assert shown.count("slot 0") == 1 and shown.count("1") >= 2
    assert picture.notes[-1].startswith("Hazard 1 (records")
    assert {row[0] for row in picture.table if row[-1]} == {"yours"}


def test_nothing_can_be_compared_with_nothing():
    picture = compare_timelines(empty(), empty(), title="t")
    parsed(picture)
    assert picture.table == ()
