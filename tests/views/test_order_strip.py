"""The order strip: what was done when, and what of it came too early."""

from xml.etree import ElementTree

import pytest

from xinfer_lab.device.timeline import TimelineEvent
from xinfer_lab.views.hazard_marks import HazardMark
from xinfer_lab.views.order_strip import order_strip


def event(record: int, lane: str, kind: str, label: str) -> TimelineEvent:
    return TimelineEvent(record, lane, kind, label, float(record), record + 1.0)


EVENTS = (
    event(0, "direct", "dispatch", "embed"),
    event(1, "copy", "copy", "layer 0"),
    event(2, "copy", "copy", "layer 0"),
    event(3, "direct", "wait", "layer 0"),
    event(4, "direct", "dispatch", "layer 0"),
)
RACE = HazardMark("read-after-write", 2, 4)


def test_copies_and_kernels_of_layers_stand_in_the_order_in_which_they_were_done() -> None:
    picture = order_strip(EVENTS, (0, 1, 2, 3, 4), title="Right", slot_of={1: 1, 2: 1, 4: 1}, hazards=(RACE,))
    assert picture.table == (
        ("1", "copy", "layer 0", "1", "1 to 2", "no"),
        ("2", "direct", "layer 0", "1", "4", "no"),
    )
    assert "copy: layer 0 in slot 1; direct: layer 0 in slot 1. None came too early." in picture.alt
    assert "badge" not in picture.svg.partition("</style>")[2]


def test_what_overtakes_what_it_races_with_is_marked_and_splits_a_copy_in_two() -> None:
    picture = order_strip(EVENTS, (1, 4, 2), title="Wrong", hazards=(RACE,))
    assert [(row[1], row[4], row[5]) for row in picture.table] == [
        ("copy", "1", "no"),
        ("direct", "4", "yes"),
        ("copy", "2", "no"),
    ]
    assert "direct: layer 0, too early" in picture.alt and "1 of 3 came before what they have to follow" in picture.alt
    assert "badge" in picture.svg.partition("</style>")[2]


def test_a_race_is_marked_only_where_both_records_were_done() -> None:
    assert order_strip(EVENTS, (4,), title="Half", hazards=(RACE,)).table[0][5] == "no"


def test_many_turns_wrap_and_the_picture_is_sound_xml() -> None:
    events = [event(n, ("copy", "direct")[n % 2], ("copy", "dispatch")[n % 2], f"layer {n // 2}") for n in range(60)]
    narrow, wide = (order_strip(events, range(60), title="A <b>", width=width) for width in (320, 960))
    heights = [float(ElementTree.fromstring(picture.svg).get("height", "0")) for picture in (narrow, wide)]
    assert heights[0] > heights[1] and len(narrow.table) == len(wide.table) == 60


def test_nothing_to_draw_is_said_and_too_little_room_is_refused() -> None:
    assert "No layer was copied or computed." in order_strip((), (), title="Empty").alt
    with pytest.raises(ValueError, match="at least 320 pixels"):
        order_strip((), (), title="Narrow", width=319)
