"""Rows over one link and over several: what they come to, and what they were to reach."""

from __future__ import annotations

import dataclasses

import pytest

from tests.command_line import invoke, refused
from xinfer_lab.bench.entries import streaming_entry
from xinfer_lab.bench.link_targets import LINKS
from xinfer_lab.bench.measure import Workload, measure_model, predict_model
from xinfer_lab.bench.rows import Report, Row, Timing
from xinfer_lab.bench.targets import verdicts
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.qwen2.config import PUBLISHED
from xinfer_lab.residency.factories import streaming_layers
from xinfer_lab.residency.weights import SizedWeights


def row(name: str, seconds: float, workload: str = "decode", **fields: object) -> Row:
    return Row(**{"name": name, "workload": workload, "timing": Timing.of([seconds] * 3), "difference": 0.0, **fields})


def report(layers: int, *rows: Row) -> Report:
    settings = {"suite": LINKS, "cards": [0, 1], "model": {"layers": layers}}
    return Report(machine={}, settings=settings, link={}, spec={"link_bandwidth": 1.0}, rows=rows)


def reached(layers: int, *rows: Row) -> dict[str, tuple[float | None, bool | None]]:
    return {found.name.split(":")[0]: (found.value, found.met) for found in verdicts(report(layers, *rows))}


@pytest.mark.parametrize(
    ("layers", "name"), [(64, "streaming decode"), (63, "the same, layers that the cards do not divide")]
)
def test_two_links_are_held_against_one(layers: int, name: str) -> None:
    one, two = row("streaming, 2 slots", 2.0, moved=8), row("streaming, 2 slots, 2 cards", 1.0, moved=8)
    found = reached(layers, one, two)
    assert found.pop(name) == (2.0, True)
    assert {value for value, _ in found.values()} == {None}
    assert reached(layers, one, dataclasses.replace(two, timing=Timing.of([1.1] * 3)))[name][1] is False
    assert reached(layers, one, dataclasses.replace(two, difference=1.0))[name][1] is False


def test_codes_budgets_prefills_and_predictions() -> None:
    found = reached(
        64,
        row("streaming, 2 slots", 2.0, moved=6),
        row("compressed 3bit, 2 slots, 2 cards", 2.0, link=1.0),
        row("planned, 24.00 GiB", 2.0),
        row("planned, 12.00 GiB, 2 cards", 1.0, predicted=1.2, peak=5, planned=5),
        row("streaming, 2 slots", 1.0, "prefill 16384"),
        row("streaming, 2 slots, 2 cards", 1.1, "prefill 16384"),
    )
    met = {name: met for name, (_, met) in found.items() if met is not None}
    assert list(met.values()) == [True, True, False, False, True]


def test_bytes_of_all_links_are_counted_and_predicted() -> None:
    config = dataclasses.replace(PUBLISHED["0.5b"], num_hidden_layers=8)
    weights, workload, spec = SizedWeights(config), Workload(1, 3, 8), GPU_SPECS["h200"]
    moved, times = [], []
    for cards in (1, 2):
        opened = SimulatedDevice(spec, memory=None, nodes=cards)
        moved.append(measure_model(weights, streaming_layers(2), workload, lambda opened=opened: opened).moved)
        times.append(predict_model(config, streaming_layers(2), workload, spec, cards=cards))
    assert moved[0] == moved[1]
    assert 1.9 < times[0] / times[1] < 2.05


def test_entries_are_named_by_their_cards() -> None:
    assert [streaming_entry(None, 2, cards).name for cards in (1, 2)] == [
        "streaming, 2 slots", "streaming, 2 slots, 2 cards",
    ]  # fmt: skip


def test_bench_takes_cards_alone() -> None:
    assert "bench measures CUDA cards" in refused(invoke("bench", "0.5b", "--device", "host"))
    assert "there is no device 'cuda:0,1'" in refused(invoke("bench", "0.5b", "--device", "cuda:0,1"))
