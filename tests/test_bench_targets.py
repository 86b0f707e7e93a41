"""Targets of a benchmark: the figure that each takes from a report, and what makes it met, missed or not measured."""

import dataclasses
import json

import pytest

from xinfer_lab.bench.rows import FIRST_TOKEN, FROM_FILE, Report, Row, Timing
from xinfer_lab.bench.targets import TARGETS, main, table, verdicts

LINK = 50e9
LAYERS = 32


def row(name, seconds, workload="decode", *, spread=0.01, **fields):
    timing = Timing.of([seconds * (1 - spread), seconds, seconds * (1 + spread)])
    return Row(name=name, workload=workload, timing=timing, **{"difference": 0.0, **fields})


def report(*rows, layer_bytes=31 * 10**9, **settings):
    model = {"layers": LAYERS, "hidden": 5120, "layer_bytes": layer_bytes}
    return Report(
        machine={"gpu": "GPU"}, settings={"model": model, **settings}, link={}, spec={"link_bandwidth": LINK}, rows=rows
    )


ROWS = {
    "streaming decode": [row("streaming, 2 slots", 0.5, moved=25e9)],
    "decode: time of the best peer": [
        row("streaming, 2 slots", 0.5, moved=25e9),
        row("prefetching offloader, 2 ahead", 0.495, peer=True),
        row("accelerate cpu_offload", 5.0, peer=True),
    ],
    "prefill: time of the best peer": [
        row("streaming, 2 slots", 0.5, "prefill 8192"),
        row("diffusers group offloading", 0.51, "prefill 8192", peer=True),
    ],
    "resident decode": [row("resident", 1.09), row("transformers, compiled", 1.0, peer=True)],
    "resident prefill": [
        row("resident", 0.99, "prefill 8192"),
        row("transformers, resident", 1.0, "prefill 8192", peer=True),
    ],
    "streaming prefill that hides": [
        row("resident", 1.0, "prefill 16384"),
        row("streaming, 2 slots", 1.02, "prefill 16384", moved=25e9),
    ],
    "8k prefill": [row("serial, pinned", 1.7, "prefill 8192"), row("streaming, 2 slots", 1.0, "prefill 8192")],
    "4-bit codes": [row("streaming, 2 slots", 0.5, moved=25e9), row("compressed 4bit, 2 slots", 0.38)],
    "best codec": [
        row("streaming, 2 slots", 0.5, moved=25e9),
        row("compressed 4bit, 2 slots", 0.38),
        row("compressed 3bit, 2 slots", 0.35),
    ],
    "decode under a budget: time of an ideal peer": [
        row("planned, 11.18 GiB", 0.45),
        row("compressed 3bit, 11.18 GiB", 0.3),
    ],
    "decode under a budget: time over": [row("planned, 11.18 GiB", 0.45, bound=0.44)],
    "from file": [row("pin_memory() first", 6.0, FIRST_TOKEN), row("streaming, registered", 1.0, FIRST_TOKEN)],
    "streaming out of a registered": [row("streaming, registered", 0.5, FROM_FILE, moved=24.9e9)],
    "predicted": [row("resident", 1.0, predicted=1.04)],
    "65 GB": [row("serial, pageable", 9.0), row("compressed 3bit, 24.00 GiB", 1.0)],
    "peak": [row("resident", 1.0, peak=101, planned=100)],
}
"""Rows that just meet the target whose name begins so, and none of its neighbours' more than they must."""


def made(start, change=lambda rows: rows):
    large = 62 * 10**9 if start == "65 GB" else 31 * 10**9
    return report(*change(ROWS[start]), layer_bytes=large, ideal_peer_moves={"decode": 25 * 10**9})


def verdict(start, *reports):
    return next(found for found in verdicts(*reports) if found.name.startswith(start))


def test_every_target_is_tried_here():
    assert len(ROWS) == len(TARGETS)
    for start, target in zip(ROWS, TARGETS, strict=True):
        assert target.name.startswith(start)


@pytest.mark.parametrize("start", ROWS)
def test_rows_that_reach_a_target_meet_it(start):
    found = verdict(start, made(start))
    assert found.met is True, found
    assert found.difference == 0


@pytest.mark.parametrize("start", ROWS)
def test_our_rows_ten_times_slower_or_larger_miss_it(start):
    def worse(rows):
        def one(it):
            fixed = it.name in ("resident", "serial, pinned", "serial, pageable", "pin_memory() first")
            if it.peer or (fixed and not start.startswith("resident")):
                return it if start not in ("predicted", "peak") else dataclasses.replace(it, predicted=1.2, peak=300)
            return dataclasses.replace(it, timing=Timing.of([10 * it.timing.median] * 3))

        return [one(it) for it in rows]

    assert verdict(start, made(start, worse)).met is False


@pytest.mark.parametrize(("layer_bytes", "most"), [(9 * 10**9, 1.25), (10 * 10**9, 1.10)])
def test_a_large_model_may_lose_less_beside_the_compiled_peer_than_a_small_one(layer_bytes, most):
    for seconds, met in ((most - 0.01, True), (most + 0.01, False)):
        rows = [row("resident", seconds), row("transformers, compiled", 1.0, peer=True)]
        assert verdict("resident decode", report(*rows, layer_bytes=layer_bytes)).met is met


@pytest.mark.parametrize("start", ROWS)
def test_a_row_whose_bytes_differ_is_no_result(start):
    def wrong(rows):
        return [it if it.peer else dataclasses.replace(it, difference=float("nan")) for it in rows]

    found = verdict(start, made(start, wrong))
    assert found.met is False
    assert found.difference != found.difference


@pytest.mark.parametrize("start", ROWS)
def test_a_row_that_was_compared_with_nothing_meets_nothing(start):
    def alone(rows):
        return [dataclasses.replace(it, difference=None) for it in rows]

    assert verdict(start, made(start, alone)).met is False


def test_what_was_not_measured_is_neither_met_nor_missed():
    assert {(found.met, found.value) for found in verdicts(report())} == {(None, None)}
    assert {cells[3] for cells in table(verdicts(report()))} == {"not measured"}


def test_the_worst_row_of_all_runs_counts():
    good, bad = (report(row("resident", 1.0, peak=peak, planned=100)) for peak in (100, 103))
    assert verdict("peak", good).met is True
    assert verdict("peak", good, bad).met is False
    assert verdict("peak", bad, good).value == pytest.approx(1.03)


def test_a_prefill_that_the_link_binds_is_not_held_against_resident():
    resident, streaming = ROWS["streaming prefill that hides"]
    bound_by_link = report(resident, dataclasses.replace(streaming, moved=60e9))
    assert verdict("streaming prefill that hides", bound_by_link).met is None


def test_the_limit_of_a_hidden_prefill_is_the_pipelines_fill():
    found = verdict("streaming prefill that hides", made("streaming prefill that hides"))
    assert found.wanted == f"at most {1 + 0.5 / LAYERS + 0.01:.4g}"


def test_a_prediction_is_held_against_steady_rows_only():
    loose = report(row("resident", 1.0, predicted=2.0, spread=0.03))
    assert verdict("predicted", loose).met is None


def test_a_row_is_held_against_the_link_of_its_own_time():
    slow = report(row("streaming, 2 slots", 1.0, moved=25e9, link=25e9))
    assert verdict("streaming decode", slow).value == pytest.approx(1.0)


def test_a_small_model_is_not_the_65_gb_one():
    assert verdict("65 GB", report(*ROWS["65 GB"])).met is None


def test_reports_are_read_and_those_that_are_not_there_are_passed_over(tmp_path, capsys):
    file = tmp_path / "report.json"
    whole = dataclasses.replace(report(row("resident", 1.0, peak=103, planned=100)), complete=False)
    file.write_text(json.dumps(whole.to_dict()), encoding="utf-8")
    assert main([str(file), str(tmp_path / "other.json")]) == 1
    printed = capsys.readouterr().out
    assert "| peak device memory over the plan's own figure | at most 1.02 | 1.03 | MISSED | 0 |" in printed
    assert "did not come to its end" in printed
