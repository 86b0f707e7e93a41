"""A benchmark's residencies on a device without a GPU: each gives the resident run's bytes, and rows say what moved."""

import contextlib
import dataclasses

import pytest
import torch

from tests.engines import keep_lab
from xinfer_lab.bench import encoded_store, files, peers, run, store, suite
from xinfer_lab.bench.drawn import DrawnWeights
from xinfer_lab.bench.entries import OWN, Entry, budget_plan
from xinfer_lab.bench.measure import Workload, measure_model, predict_model, row_of
from xinfer_lab.bench.rows import FIRST_TOKEN, FROM_FILE, Report, Row, Timing
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.engine.assemble import Engine
from xinfer_lab.qwen2 import SyntheticSpec
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.factories import resident_layers, serial_layers, streaming_layers
from xinfer_lab.residency.weights import SyntheticWeights

LINK = {"to device, pinned, 1024 MiB": 50e9, "to device, pageable, 1024 MiB": 6e9}
PAGEABLE = 8e9
SPEC = GPU_SPECS["h200"]


class PlainMemory:
    """Stands for pinned memory where nothing can be pinned."""

    def __init__(self, size):
        self.tensor, self.pinned_bytes = torch.zeros(size, dtype=torch.uint8), size

    def unpin(self):
        self.pinned_bytes = 0

    def close(self):
        self.tensor = torch.empty(0, dtype=torch.uint8)


class Card(EmulatedDevice):
    """An emulated device that takes what a CUDA device is opened with."""

    def __init__(self, index=0, *, pin=True, **options):
        super().__init__(**options)


@pytest.fixture
def config():
    spec = SyntheticSpec(
        layers=6, hidden=32, heads=2, kv_heads=1, intermediate=64, vocab=64, dtype="bfloat16", context=64
    )
    return spec.config()


@pytest.fixture
def without_gpu(monkeypatch, small_heap):
    for module in (store, encoded_store):
        monkeypatch.setattr(module, "PinnedMemory", PlainMemory)
    monkeypatch.setattr(suite, "CudaDevice", Card)
    monkeypatch.setattr(run, "CudaDevice", Card)
    monkeypatch.setattr(run, "measure_pinned_rate", lambda device: 50e9)
    monkeypatch.setattr(run, "submit_time", lambda config, device: SPEC.submit_time)
    monkeypatch.setattr(suite, "measure_pageable_rate", lambda device, memories: PAGEABLE)
    monkeypatch.setattr(suite, "measure_link", lambda device: dict(LINK))
    monkeypatch.setattr(suite, "measure_spec", lambda config, device, link, prefills: SPEC)
    monkeypatch.setattr(suite, "machine", lambda device: {"gpu": "none"})
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())


def whole(config, saved=None, **options):
    """The report of a whole benchmark but for what only a card can say."""
    settings = run.Settings(decode=2, prompt=3, prefills=(5,), pools=(2, 3), **{"peers": (), **options})
    save = (lambda report: None) if saved is None else saved.append
    return suite.run_suite(config, settings, torch.device("cpu"), save=save)


def test_copies_from_pageable_memory_are_predicted_at_the_rate_of_the_layers_own_memory(without_gpu, config):
    rows = {row.name: row for row in whole(config, codecs=()).rows if row.workload == "decode"}
    row = rows["serial, pageable"]
    assert row.predicted is not None and row.moved is not None
    copying = row.predicted - (rows["serial, pinned"].predicted - row.moved / 50e9)
    assert copying == pytest.approx(row.moved / PAGEABLE, rel=0.01)


def test_where_the_host_submits_and_little_else_it_is_measured_how_fast_it_does_beside_the_row(
    without_gpu, config, monkeypatch
):
    alone = {row.workload: row for row in whole(config, codecs=(), pageable=False).rows if row.name == "resident"}
    speeds = iter((1e-3, 3e-3))
    monkeypatch.setattr(run, "submit_time", lambda config, device: next(speeds))
    beside = {row.workload: row for row in whole(config, codecs=(), pageable=False).rows if row.name == "resident"}
    assert next(speeds, None) is None
    assert beside["decode"].predicted == pytest.approx((6 * 9 + 3) * 2e-3, rel=0.1)
    assert beside["prefill 5"].predicted == alone["prefill 5"].predicted


def measured(config, **options):
    """Its rows."""
    return whole(config, **options).rows


def test_every_residency_gives_the_resident_runs_bytes(config, without_gpu):
    decode = Workload(1, 2, 3)
    base = sum(budget_plan(config, decode, 2**40, {}).always.values())
    rows = measured(config, budget=base + 5 * layer_layout(config).nbytes)
    names = {row.name.partition(",")[0] for row in rows}
    assert names == {"resident", "serial", "streaming", "planned", "compressed 4bit", "compressed 3bit"}
    assert {row.workload for row in rows} == {"decode", "prefill 5"}
    for row in rows:
        assert row.timing is not None, row
        assert row.difference == 0, row
        assert not row.failed


def test_a_row_that_fails_is_noted_and_the_others_go_on(config, without_gpu, monkeypatch, capsys):
    class Broken:
        def __init__(self, *_):
            raise ZeroDivisionError("the codec broke")

    monkeypatch.setattr(suite, "EncodedStore", Broken)
    saved = []
    report = whole(config, saved, codecs=("3bit",))
    broken = [row for row in report.rows if row.broken]
    assert [(row.name, row.note) for row in broken] == [("compressed 3bit", "ZeroDivisionError: the codec broke")]
    assert report.failed
    assert report.complete
    assert "serial, pageable" in {row.name for row in report.rows if row.timing is not None}
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_every_row_is_saved_as_soon_as_it_is_there(config, without_gpu):
    saved = []
    report = whole(config, saved, codecs=())
    assert [len(one.rows) for one in saved] == list(range(1, len(report.rows) + 1))
    assert not any(one.complete for one in saved)
    assert saved[-1].targets


def test_without_the_cards_figures_rows_are_measured_and_not_predicted(config, without_gpu, monkeypatch, capsys):
    def broken(*_):
        raise RuntimeError("no timer")

    monkeypatch.setattr(suite, "measure_spec", broken)
    rows = measured(config, codecs=())
    assert rows[0].note == "RuntimeError: no timer"
    timed = [row for row in rows if row.timing is not None]
    assert timed and all(row.predicted is None for row in timed)
    assert "no timer" in capsys.readouterr().err


def test_without_a_resident_run_nothing_is_called_equal_to_it(config, without_gpu, monkeypatch, capsys):
    def broken(*_):
        raise RuntimeError("too large")

    monkeypatch.setattr(suite, "resident_entry", lambda: Entry(name="resident", real=broken, sized=broken))
    rows = measured(config, codecs=())
    assert all(row.difference is None for row in rows)
    assert "too large" in capsys.readouterr().err


def test_a_peer_that_fails_is_noted_and_its_other_rows_too(config, without_gpu, monkeypatch, capsys):
    class Fails:
        setup = 1.0

        def __init__(self, *_):
            pass

        def measure(self, workload):
            raise ValueError("not today")

        def close(self):
            pass

    monkeypatch.setattr(run, "PeerModel", Fails)
    monkeypatch.setattr(suite, "installed", lambda peer: True)
    report = whole(config, codecs=(), peers=tuple(peer.name for peer in peers.PEERS))
    failed = [(row.name, row.workload) for row in report.rows if row.peer]
    assert failed == [
        (peer.name, workload)
        for pageable in (False, True)
        for peer in peers.PEERS
        if peer.pageable is pageable
        for workload in ("decode", "prefill 5")
        if workload == "decode" or not peer.compiled
    ]
    assert not report.failed
    assert "not today" in capsys.readouterr().err


def test_a_checkpoint_runs_from_every_tier_and_is_deleted(config, without_gpu, monkeypatch, tmp_path):
    monkeypatch.setattr(files, "CudaDevice", Card)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self.clone())
    rows = whole(config, codecs=(), pageable=False, file_layers=4, directory=tmp_path).rows
    rows = [row for row in rows if row.workload in (FIRST_TOKEN, FROM_FILE)]
    names = ["resident", "pin_memory() first", "streaming, registered", "streaming, pinned", "streaming, staged"]
    assert [row.name for row in rows if row.workload == FIRST_TOKEN] == names
    assert all(row.difference == 0 and row.link and row.timing is not None for row in rows), rows
    assert list(tmp_path.iterdir()) == []


def test_a_tier_that_fails_is_noted_and_the_others_run(config, without_gpu, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(files, "CudaDevice", Card)

    def refused(self):
        raise RuntimeError("no pinning here")

    monkeypatch.setattr(torch.Tensor, "pin_memory", refused)
    rows = whole(config, codecs=(), pageable=False, file_layers=4, directory=tmp_path).rows
    broken = [row for row in rows if row.broken]
    assert [row.name for row in broken] == ["pin_memory() first"]
    assert "no pinning here" in broken[0].note
    assert {row.name for row in rows if row.workload == FIRST_TOKEN and row.timing} >= {"resident", "streaming, staged"}
    assert "no pinning here" in capsys.readouterr().err


def test_what_does_not_fit_is_said_and_not_timed(config, without_gpu):
    rows = [row for row in measured(config, budget=2**10, codecs=()) if row.name.startswith("planned")]
    assert rows
    for row in rows:
        assert row.timing is None
        assert "not enough" in row.note


def test_a_streaming_pass_moves_every_layer_once(config, without_gpu):
    layers = store.LayerStore(DrawnWeights(config, "cpu"))
    workload = Workload(1, 3, 4)
    found = measure_model(layers, streaming_layers(2), workload, Card)
    assert found.moved == 6 * layer_layout(config).nbytes
    assert len(found.seconds) == 3
    assert len(found.logits) == 4
    assert found.planned is not None


def test_a_store_holds_the_bytes_that_were_drawn(config, without_gpu):
    weights = DrawnWeights(config, "cpu")
    layers = store.LayerStore(weights)
    for name in ("model.layers.0.mlp.down_proj.weight", "model.layers.5.self_attn.q_proj.bias", "model.norm.weight"):
        assert torch.equal(layers.bytes(name), weights.bytes(name))
    place = layers.locate("model.layers.5.self_attn.q_proj.bias")
    held = layers.bytes(place.name)[place.offset : place.offset + place.size]
    assert torch.equal(held, weights.bytes("model.layers.5.self_attn.q_proj.bias"))


def test_drawn_weights_differ_between_layers_and_not_between_times(config):
    names = [f"model.layers.{layer}.mlp.up_proj.weight" for layer in (0, 1)]
    first, again = DrawnWeights(config, "cpu"), DrawnWeights(config, "cpu")
    assert torch.equal(first.bytes(names[0]), again.bytes(names[0]))
    assert not torch.equal(first.bytes(names[0]), first.bytes(names[1]))
    assert not torch.equal(first.bytes(names[0]), DrawnWeights(config, "cpu", seed=1).bytes(names[0]))


def test_wrong_bytes_are_a_failure_and_no_result(config, without_gpu):
    layers = store.LayerStore(DrawnWeights(config, "cpu"))
    workload = Workload(1, 1, 3)
    right = measure_model(layers, resident_layers(), workload, Card)
    wrong = dataclasses.replace(right, logits=[right.logits[0], right.logits[1] + 1])
    row = row_of("streaming, 2 slots", workload, wrong, right.logits)
    assert row.failed
    assert row.difference == pytest.approx(1.0, abs=0.1)
    report = Report(machine={}, settings={}, link={}, spec={}, rows=[row])
    assert report.failed
    peer = dataclasses.replace(row, peer=True)
    assert not peer.failed


def test_a_report_survives_json():
    import json

    rows = [
        Row(name="a", workload="decode", timing=Timing.of([1.0, 2.0, 4.0]), moved=8, difference=0.0),
        Row(name="b", workload="decode", timing=Timing.of([1.0]), difference=float("nan")),
        Row(name="c", workload="decode", note="did not fit"),
    ]
    report = Report(machine={"gpu": "x"}, settings={"model": {}}, link={}, spec={"link_bandwidth": 2.0}, rows=rows)
    again = Report.from_dict(json.loads(json.dumps(report.to_dict())))
    assert again.rows[0] == rows[0]
    assert again.rows[0].rate == 4.0
    assert again.rows[1].failed
    assert again.rows[2] == rows[2]


def test_a_prediction_is_the_virtual_clocks(config):
    spec = dataclasses.replace(SPEC, launch_time=0.0)
    resident = predict_model(config, resident_layers(), Workload(1, 3, 4), spec)
    streaming = predict_model(config, streaming_layers(2), Workload(1, 3, 4), spec)
    layer = sum(spec.copy_time(group.nbytes) for group in layer_layout(config).groups)
    assert streaming == pytest.approx(6 * layer, rel=0.01)
    assert resident < streaming


def test_a_host_that_submits_slowly_shows_in_the_prediction(config):
    slow = dataclasses.replace(SPEC, submit_time=1e-3)
    fast = predict_model(config, resident_layers(), Workload(1, 3, 4), SPEC)
    # 9 launches a layer, and those of embedding and head.
    assert predict_model(config, resident_layers(), Workload(1, 3, 4), slow) == pytest.approx(57e-3, rel=0.01)
    assert fast < 57e-3 / 10


def test_a_row_that_its_limit_ended_early_moved_what_its_passes_moved(without_gpu, config):
    weights = SyntheticWeights(config, seed=0)
    rows = [
        measure_model(weights, serial_layers(), workload, Card)
        for workload in (Workload(1, 4, 3, warm=False), Workload(1, 4, 3, warm=False, limit=1e-9))
    ]
    assert [len(row.seconds) for row in rows] == [4, 1]
    assert rows[0].moved == rows[1].moved == config.num_hidden_layers * layer_layout(config).nbytes


def test_a_students_engine_has_rows_of_its_own_and_its_faults_are_noted(config, without_gpu, tmp_path, monkeypatch):
    keep_lab("lab2", tmp_path, monkeypatch)
    keep_lab("lab4", tmp_path, monkeypatch)
    engine = Engine(tmp_path)
    settings = run.Settings(decode=2, prompt=3, prefills=(), pools=(2, 3), peers=(), codecs=(), pageable=False)
    report = suite.run_suite(config, settings, torch.device("cpu"), own=engine.streaming)
    mine = {row.name: row for row in report.rows if row.name.startswith(OWN)}
    assert set(mine) == {"my engine, 2 slots", "my engine, 3 slots"}
    for row in mine.values():
        assert row.difference == 0 and row.predicted > 0 and not row.failed
    assert engine.lent == ["layer_of", "slot_of"] and engine.used["copy_engine"]

    path = tmp_path / "streaming_layers.py"
    path.write_text(path.read_text().replace("self.step += 1", "self.step += 1 // 0"))
    report = suite.run_suite(config, settings, torch.device("cpu"), own=Engine(tmp_path).streaming)
    notes = [row.note for row in report.rows if row.name.startswith(OWN)]
    assert notes and all(note.startswith("your part stopped in streaming_layers.py, line ") for note in notes)
    assert all(row.difference == 0 for row in report.rows if row.name.startswith("streaming"))
