"""A benchmark of pages on a device without a GPU, and small on one: rows, their bytes, ratios and targets."""

import contextlib
import dataclasses
import json

import pytest
import torch

from tests.command_line import invoke, refused
from tests.test_bench_suite import LINK, Card, PlainMemory
from xinfer_lab.bench import pages, run, store
from xinfer_lab.bench.page_copies import GROUP, NumberedPages, PageCopies, copy_rows
from xinfer_lab.bench.pages import PageSettings, run_pages
from xinfer_lab.bench.ratios import ratios, waterfall
from xinfer_lab.bench.rows import (
    BOTH_WAYS,
    COPIES,
    EXPERTS_DECODE,
    FETCHED_AHEAD,
    IN_A_ROW,
    PAGED_HITS,
    RECOMPUTED,
    Report,
    Row,
)  # fmt: skip
from xinfer_lab.bench.tables import charts, markdown
from xinfer_lab.bench.targets import verdicts
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.qwen2 import SyntheticSpec

PAGE = 4096
SPEC = SyntheticSpec(layers=4, hidden=32, heads=2, kv_heads=1, intermediate=64, vocab=64, dtype="bfloat16", context=256)
SMALL = PageSettings(
    page_bytes=PAGE, frames=2 * GROUP, rounds=2,
    experts=dataclasses.replace(SPEC, experts=8, experts_per_token=2), expert_steps=3,
    cached=SPEC, prefix=70, offloaded=dataclasses.replace(SPEC, layers=8, hidden=64, intermediate=1024), over=1.5,
    prefill=9, steps=2,
)  # fmt: skip


@pytest.fixture
def without_gpu(monkeypatch, small_heap):
    monkeypatch.setattr(store, "PinnedMemory", PlainMemory)
    monkeypatch.setattr(pages, "CudaDevice", Card)
    monkeypatch.setattr(run, "CudaDevice", Card)
    monkeypatch.setattr(run, "measure_pinned_rate", lambda device: 50e9)
    monkeypatch.setattr(pages, "measure_link", lambda device: dict(LINK))
    monkeypatch.setattr(pages, "machine", lambda device: {"gpu": "none"})
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())


def of(report: Report, workload: str) -> dict[str, Row]:
    return {row.name: row for row in report.rows if row.workload == workload}


def test_every_row_is_measured_and_has_the_bytes_that_it_should(without_gpu):
    saved = []
    report = run_pages(SMALL, torch.device("cpu"), save=saved.append)
    assert not [(row.name, row.note) for row in report.rows if row.timing is None]
    assert not report.failed
    assert len(saved) == len(report.rows)
    compared = [row for row in report.rows if row.difference is not None]
    assert {row.difference for row in compared} == {0}
    assert {row.name for row in report.rows} - {row.name for row in compared} == {
        "one large copy", "one large copy each way at once", RECOMPUTED,
    }  # fmt: skip
    assert Report.from_dict(json.loads(json.dumps(report.to_dict()))).rows == list(report.rows)

    copies = of(report, COPIES)
    half = SMALL.frames * PAGE
    assert copies[IN_A_ROW].moved == copies["pages in a row, no two neighbours"].moved == half
    assert copies["pages on demand, one by one"].moved == 2 * half
    assert copies[BOTH_WAYS].moved == copies["pages both ways, one by one"].moved == 4 * half

    experts = list(of(report, EXPERTS_DECODE).values())
    assert [row.name.partition(",")[0] for row in experts] == ["resident", "experts on demand", "experts guessed ahead"]
    assert "hit rate" in experts[1].note
    assert "of the guesses were right" in experts[2].note

    cache = of(report, "decode after 70 tokens")
    assert set(cache) == {"resident", "paged cache, 0.33 of it in device memory", RECOMPUTED}
    assert cache[RECOMPUTED].timing == of(report, "prefill 70")["resident"].timing

    for workload in ("decode, offloaded", "prefill 9, offloaded"):
        steps = [row.name for row in waterfall(report, workload)]
        assert steps == ["serial, pageable", "serial, pinned", FETCHED_AHEAD, PAGED_HITS]
        moved = {name: row.moved for name, row in of(report, workload).items()}
        assert moved["serial, pinned"] == moved["serial, pageable"] > moved[PAGED_HITS] > 0
        assert "uses moved nothing" in of(report, workload)[PAGED_HITS].note


def test_what_is_offloaded_runs_within_the_budget(without_gpu):
    settings = dataclasses.replace(SMALL, parts=("offload",), prefill=0)
    report = run_pages(settings, torch.device("cpu"))
    given = report.settings["offload"]
    assert given["budget"] == int(given["resident_bytes"] / settings.over)
    for row in report.rows:
        if row.name != "resident":
            assert row.planned <= given["budget"]
    assert {row.workload for row in report.rows} == {"decode, offloaded"}


def test_each_part_runs_alone_and_one_that_fails_is_noted(without_gpu, monkeypatch, capsys):
    def broken(*_):
        raise ZeroDivisionError("no experts today")

    monkeypatch.setattr(pages, "expert_entries", broken)
    report = run_pages(dataclasses.replace(SMALL, parts=("experts", "cache")), torch.device("cpu"))
    assert [(row.name, row.note) for row in report.rows if row.broken] == [
        ("experts", "ZeroDivisionError: no experts today")
    ]
    assert of(report, "decode after 70 tokens")
    assert not of(report, COPIES)
    assert "no experts today" in capsys.readouterr().err


def test_pages_that_arrive_wrong_are_no_result(without_gpu, monkeypatch):
    monkeypatch.setattr(NumberedPages, "content", lambda self, number: self._base)
    right = NumberedPages.bytes
    monkeypatch.setattr(NumberedPages, "bytes", lambda self, name: right(self, name) + (name == "page[3]") * 2)
    report = run_pages(dataclasses.replace(SMALL, parts=("copies",)), torch.device("cpu"))
    assert of(report, COPIES)[IN_A_ROW].difference == 2
    assert report.failed


def simulated() -> dict[str, Row]:
    """Rows of copies on a card of the virtual clock, whose link moves 55.2 GB/s and takes 15 us for each copy."""
    device = SimulatedDevice(GPU_SPECS["h200"], check=False)
    found = copy_rows(lambda: device, PageCopies(128, 2**21, 2), lambda: 55.2e9, lambda: device.now)
    return {row.name: row for row in found}


def test_by_the_clock_pages_in_a_row_cross_at_the_links_rate_and_those_that_are_no_neighbours_do_not():
    rows = simulated()
    share = {name: row.rate / 55.2e9 for name, row in rows.items()}
    assert share["one large copy"] == pytest.approx(1, rel=0.01)
    assert share[IN_A_ROW] > 0.99
    assert share[f"pages in a row, {GROUP} a call"] > 0.98
    assert share["pages in a row, no two neighbours"] < 0.75
    assert share["pages on demand, one by one"] < 0.75
    assert share[f"pages on demand, {GROUP} at a time"] > 0.95
    assert share["one large copy each way at once"] == pytest.approx(2, rel=0.01)
    assert share[BOTH_WAYS] > 1.6
    assert share["pages written back in a row"] > 0.98


def report_of(*rows: Row) -> Report:
    settings = {"suite": "pages", "model": {"layers": 5, "hidden": 32}}
    return Report(
        machine={"gpu": "GPU"}, settings=settings, link={}, spec={"link_bandwidth": 50e9}, rows=list(rows)
    )  # fmt: skip


def row(name: str, workload: str, seconds: float, **fields) -> Row:
    return Row(
        name=name, workload=workload, timing=run_timing(seconds), **{"difference": 0.0, "link": 50e9, **fields}
    )  # fmt: skip


def run_timing(seconds: float):
    from xinfer_lab.bench.rows import Timing

    return Timing.of([seconds * 0.99, seconds, seconds * 1.01])


MET = [
    row(IN_A_ROW, COPIES, 1.0, moved=48 * 10**9),
    row(BOTH_WAYS, COPIES, 1.0, moved=76 * 10**9),
    row("paged cache, 0.33 of it in device memory", "decode after 9 tokens", 0.1, peak=100, planned=100),
    row(RECOMPUTED, "decode after 9 tokens", 0.51, difference=None),
    row("serial, pageable", "decode, offloaded", 6.3),
    row("serial, pinned", "decode, offloaded", 1.5),
    row(FETCHED_AHEAD, "decode, offloaded", 1.2),
    row(PAGED_HITS, "decode, offloaded", 1.0),
]


def test_rows_that_reach_the_targets_meet_them():
    assert [found.met for found in verdicts(report_of(*MET))] == [True] * 5


@pytest.mark.parametrize(("place", "target"), [(0, 0), (1, 1), (2, 2), (7, 3)])
def test_rows_that_are_slower_or_wrong_miss_them(place, target):
    for change in ({"timing": run_timing(2.0)}, {"difference": 1.0}, {"difference": None}):
        rows = [*MET[:place], dataclasses.replace(MET[place], **change), *MET[place + 1 :]]
        assert verdicts(report_of(*rows))[target].met is False


def test_a_benchmark_is_held_against_its_own_targets():
    assert len(verdicts(report_of())) == 5
    assert not {found.name for found in verdicts(report_of())} & {found.name for found in verdicts()}


def test_what_is_told_of_pages():
    expert = row("experts on demand, 1.00 GiB", EXPERTS_DECODE, 0.02)
    found = ratios(report_of(*MET, expert))
    wanted = {
        f"{COPIES}: {IN_A_ROW}, bytes a second over the link's one way": 0.96,
        f"{EXPERTS_DECODE}: experts on demand, 1.00 GiB, tokens a second": 50.0,
        f"decode after 9 tokens: {RECOMPUTED} over paged cache, 0.33 of it in device memory": 5.1,
        "decode, offloaded: pageable serial over pinned serial": 4.2,
        "decode, offloaded: pinned serial over pages that are fetched ahead": 1.25,
        "decode, offloaded: pages that are fetched ahead over those that stay too": 1.2,
        "decode, offloaded: pageable serial over our best": 6.3,
        "decode, offloaded: less latency than pageable serial": 1 - 1 / 6.3,
    }
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value), name


def test_tables_and_charts_of_pages():
    report = report_of(*MET)
    pictures = charts(report)
    assert set(pictures) == {
        "page-copies", "decode-after-9-tokens", "decode-offloaded", "waterfall-decode-offloaded",
    }  # fmt: skip
    assert "layers of hidden size" not in pictures["page-copies"].title
    assert "overlapped, and some stay" in pictures["waterfall-decode-offloaded"].svg
    assert "| pages in a row: bytes a second over the pinned link | at least 0.95 | 0.96 | met |" in markdown(report)


def test_bench_pages_needs_a_gpu_and_parts_that_there_are(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert "finds no CUDA device" in refused(invoke("bench-pages"))
    assert "no part 'copy'; write some of copies, experts" in refused(invoke("bench-pages", "--parts", "copy"))
    assert "write some of the parts" in refused(invoke("bench-pages", "--parts", ","))
    assert "multiple of 256" in refused(invoke("bench-pages", "--page", "1000"))


@pytest.mark.cuda
def test_small_on_a_gpu():
    # Of sizes that fused kernels take; what is offloaded is large beside what the matrix library keeps.
    spec = SyntheticSpec(
        layers=4, hidden=256, heads=8, kv_heads=2, intermediate=704, vocab=256, dtype="bfloat16", context=256
    )
    settings = dataclasses.replace(
        SMALL, page_bytes=2**16, experts=dataclasses.replace(spec, experts=8), cached=spec,
        offloaded=dataclasses.replace(spec, layers=16, intermediate=8192),
    )  # fmt: skip
    report = run_pages(settings, torch.device("cuda", 0))
    assert not [(row.name, row.note) for row in report.rows if row.timing is None]
    assert not report.failed
    assert {row.workload for row in report.rows} >= {COPIES, EXPERTS_DECODE, "decode, offloaded"}
    assert waterfall(report, "decode, offloaded")[-1].name == PAGED_HITS
