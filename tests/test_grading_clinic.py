"""The clinic's charts say what a streamer does, and a step function streams as a ring of slots does."""

from __future__ import annotations

from html import unescape
from random import Random

import pytest

from tests.answer_bank import answers, run
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.records import Copy, HostWrite, Source, Span
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.grading.programs.model_case import ModelCase
from xinfer_lab.grading.programs.provenance import read_provenance
from xinfer_lab.labs.lab4.given.clinic import admit
from xinfer_lab.labs.lab4.given.stepped import step_ring
from xinfer_lab.labs.lab4.given.tracked_ring import TrackedRing
from xinfer_lab.residency.errors import LayerOrderError

BROKEN = {answer.function: answer for answer in answers("wrong") if answer.path.stem == "as_it_came"}
MENDED = {
    a.function: a for a in answers("correct") if a.lab == "lab4" and a.path.stem == "reference" and a.function in BROKEN
}


def chart_of(answer, function):  # type: ignore[no-untyped-def]
    return admit(run(answer)[function], spare=int(function in ("ordering", "mid_call")))


@pytest.mark.parametrize("function", sorted(MENDED))
def test_a_mended_patient_has_no_finding_and_equal_bytes_under_every_schedule(function: str) -> None:
    chart = chart_of(MENDED[function], function)
    assert (chart.hazards, chart.state_faults, chart.report) == (0, 0, "")
    assert all(line.endswith("= 0") for _, line in chart.runs) and "No finding." in str(chart)


@pytest.mark.parametrize(
    ("function", "hazards", "state_faults", "report"),
    [
        ("ordering", True, True, "wait on one's own queue"),
        ("lifetime", True, False, "use after free"),
        ("wrap_around", False, False, ""),
        ("mid_call", False, True, "rejected by the device"),
    ],
)
def test_a_broken_patient_shows_its_own_finding(function: str, hazards: bool, state_faults: bool, report: str) -> None:
    chart = chart_of(BROKEN[function], function)
    assert (bool(chart.hazards), bool(chart.state_faults)) == (hazards, state_faults)
    assert chart.report.startswith(report) and "/site-packages/" not in chart.report
    if report:
        assert "your line" in chart.report
    right = [line.endswith("= 0") for _, line in chart.runs]
    assert (
        right
        == {
            "ordering": [False, True, False],
            "lifetime": [False, False, True],
            "wrap_around": [False] * 3,
            "mid_call": [True] * 3,
        }[function]
    )
    html = chart._repr_html_()
    assert "<img" in html and "alt=" in html


def test_a_schedule_s_order_shows_the_hazard_where_the_numbers_are_wrong_and_only_there() -> None:
    chart = admit(run(BROKEN["ordering"])["ordering"], schedules=("timed", "copies_first", "copies_last", "random(3)"))
    assert [schedule for schedule, _ in chart.runs] == list(chart.orders)
    for schedule, line in chart.runs:
        early = ", too early" in chart.order(schedule).alt
        assert early == (not line.endswith("= 0")), schedule
    done = {record for record, entry in enumerate(chart.stream) if isinstance(entry, Copy)}
    assert all(done <= set(order) for order in chart.orders.values()), "each copy was done, and is said once"
    with pytest.raises(KeyError):
        chart.order("random(4)")


def test_a_chart_s_sentences_fit_a_notebook_and_its_drawing_keeps_its_lines() -> None:
    chart = admit(run(BROKEN["ordering"])["ordering"])
    told, _, drawn = chart.report.partition("\n\n")
    shown = unescape(chart._repr_html_())
    assert max(map(len, told.splitlines())) > 80 and drawn in shown
    start = shown.index(told[:20])
    assert all(len(line) <= 80 for line in shown[start : shown.index(drawn)].splitlines())


def test_four_layers_hide_a_wrong_wrap_from_two_slots_and_five_do_not() -> None:
    patient = run(BROKEN["wrap_around"])["wrap_around"]
    assert [admit(patient, layers=layers).runs[0][1].endswith("= 0") for layers in (4, 5, 6, 7)] == [
        True,
        False,
        True,
        False,
    ]


def ring(device: EmulatedDevice):  # type: ignore[no-untyped-def]
    case = ModelCase.draw(Random(1), layers=3, pool=2, steps=1)
    weights = case.weights()
    device.sources.mount(weights)
    return step_ring(lambda ring, step, compute: None, 2)(device, weights)


def test_a_step_ring_runs_once_and_computes_its_layers_itself() -> None:
    with EmulatedDevice() as device:
        made = ring(device)
        made.begin(1)
        with pytest.raises(LayerOrderError, match="runs once"):
            made.begin(1)
        with pytest.raises(LayerOrderError, match="SteppedModel"):
            made.ensure(0)
        made.close()


def test_a_tracked_ring_refuses_to_keep_the_books() -> None:
    with EmulatedDevice() as device:
        made = ring(device)
        assert isinstance(made, TrackedRing) and made.slot_of(3) is made.slots[1] and made.layer_of(4) == 1
        with pytest.raises(TypeError, match="assume_common"):
            made.hand_over(made.slots[0], 0)
        made.close()


def test_what_was_uploaded_is_known_where_a_copy_within_device_memory_took_it() -> None:
    name = "model.layers.2.mlp.up_proj.weight"
    records = [
        HostWrite(dst=Span("heap", 0, 64), source=Source(name, 0, 64)),
        Copy(queue="copy", dst=Span("pad", 0, 64), src=Span("heap", 0, 64), call=1),
        Copy(queue="direct", dst=Span("work", 128, 32), src=Span("pad", 32, 32), call=2),
    ]
    program = read_provenance(CommandStream(records))
    assert [(upload.record, upload.layer, upload.dst.buffer) for upload in program.uploads] == [(1, 2, "pad")]
