"""What a report's rows come to: ratios, the waterfall, tables and charts."""

import pytest

from xinfer_lab.bench.ratios import ratios, waterfall
from xinfer_lab.bench.rows import Report, Row, Timing, is_steady
from xinfer_lab.bench.tables import COLUMNS, charts, markdown, row_cells

LINK = 50e9


def row(name, seconds, *, workload="decode", moved=None, **fields):
    timing = Timing.of([seconds * 0.99, seconds, seconds * 1.01])
    return Row(name=name, workload=workload, timing=timing, moved=moved, **{"difference": 0.0, **fields})


@pytest.fixture
def report():
    rows = [
        row("resident", 0.02),
        row("serial, pageable", 4.0, moved=25e9),
        row("serial, pinned", 0.52, moved=25e9),
        row("streaming, 2 slots", 0.5, moved=25e9, predicted=0.51, bound=0.5, peak=101, planned=100),
        row("planned, 12.00 GiB", 0.4, moved=20e9, bound=0.4),
        row("compressed 3bit, 2 slots", 0.36, moved=17e9, bound=0.34),
        row("compressed 3bit, 12.00 GiB", 0.25, moved=12e9, bound=0.24),
        row("prefetching offloader, 2 ahead", 0.51, moved=25e9, peer=True),
        row("accelerate device_map", 3.0, moved=20e9, peer=True),
        Row(name="streaming, 3 slots", workload="decode", note="did not fit"),
    ]
    settings = {"model": {"layers": 32, "hidden": 5120}}
    return Report(machine={"gpu": "GPU"}, settings=settings, link={"x": LINK}, spec={"link_bandwidth": LINK}, rows=rows)


def test_each_target_has_its_figure(report):
    found = ratios(report)
    wanted = {
        "decode: streaming's bytes a second over the link's": 1.0,
        "decode: streaming over resident": 25.0,
        "decode: pageable serial over pinned serial": 4.0 / 0.52,
        "decode: pinned serial over streaming": 1.04,
        "decode: best peer over streaming": 1.02,
        "decode: pageable serial over our best": 16.0,
        "decode: planned, 12.00 GiB, time over bound": 1.0,
        "decode: compressed 3bit, 2 slots, bytes of plain weights a second over the link's": 25 / 0.36 / 50,
        "decode: an ideal peer of the same budget over compressed 3bit, 12.00 GiB": 1.6,
        "predicted over measured: streaming, 2 slots, decode": 1.02,
        "peak over planned: streaming, 2 slots, decode": 1.01,
    }
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value), name


def test_a_row_that_is_not_steady_has_no_prediction_to_meet():
    loose = Row(name="a", workload="decode", timing=Timing.of([1.0, 1.1]), predicted=1.0)
    once = Row(name="b", workload="decode", timing=Timing.of([1.0]), predicted=1.0)
    assert not is_steady(loose.timing)
    assert not is_steady(once.timing)
    found = ratios(Report(machine={}, settings={}, link={}, spec={"link_bandwidth": 1.0}, rows=[loose, once]))
    assert not any("predicted" in name for name in found)


def test_the_waterfall_goes_from_naive_to_best(report):
    assert [step.name for step in waterfall(report, "decode")] == [
        "serial, pageable",
        "serial, pinned",
        "streaming, 2 slots",
        "planned, 12.00 GiB",
        "compressed 3bit, 12.00 GiB",
    ]
    assert waterfall(report, "prefill 8192") == []


def test_a_row_has_a_cell_for_each_column(report):
    assert all(len(row_cells(item)) == len(COLUMNS) for item in report.rows)
    assert row_cells(report.rows[-1])[2] == "not run"


def test_tables_and_charts_say_what_was_measured(report):
    text = markdown(report)
    assert "did not fit" in text
    assert "| streaming, 2 slots | decode | 500 ms |" in text
    pictures = charts(report)
    assert set(pictures) == {"decode", "waterfall-decode"}
    assert "compressed 3bit, 12.00 GiB: 250 ms" in pictures["waterfall-decode"].alt
    assert "streaming, 3 slots" not in pictures["decode"].alt


def test_a_link_that_changed_meanwhile_is_said_aloud(report):
    import dataclasses

    name = "to device, pinned, 1024 MiB"
    steady = dataclasses.replace(report, link={name: 50e9, f"{name}, after the rows": 49.5e9})
    changed = dataclasses.replace(report, link={name: 50e9, f"{name}, after the rows": 40e9})
    assert "Run again" not in markdown(steady)
    assert "The link's rate changed by 20 % between rows" in markdown(changed)
