"""Layers over several cards: the same bytes as on one, no hazard, a budget and a link for each."""

from __future__ import annotations

import dataclasses
import re

import pytest
import torch

from tests.command_line import invoke, refused
from tests.models import PROMPT, Models, tiny
from tests.sample import sampled
from tests.views.perfetto_rules import problems
from xinfer_lab.device.checker import check_stream
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import BufferRangeError, EarlyWait, OutOfDeviceMemory, StreamError
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.device.memory import WORKSPACE
from xinfer_lab.device.node_names import node_of, on_node
from xinfer_lab.device.records import Wait, queue_of
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.qwen2.config import PUBLISHED, Qwen2Config
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.codec.encoded import EncodedMemory
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.factories import paged_layers, planned_layers, resident_layers, streaming_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.paged_cache import paged_cache
from xinfer_lab.residency.parity import Run, greedy_run, run_fixed, same_bytes
from xinfer_lab.residency.plan import Shape, make_plan, plan_cards
from xinfer_lab.residency.weights import SizedWeights
from xinfer_lab.views.perfetto import perfetto_json
from xinfer_lab.views.timeline_panel import lane_names

STEPS = 4


def clean(run: Run) -> None:
    assert not run.hazards and not run.state_faults, (run.hazards + run.state_faults)[0]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return Models(tmp_path_factory.mktemp("cards"))


@pytest.mark.parametrize("schedule", ["copies_first", "copies_last"])
@pytest.mark.parametrize("cards", [2, 3, 4])
@pytest.mark.parametrize("layers", [6, 7])
@pytest.mark.parametrize("pool", [1, 2, 3])
def test_bytes_are_those_of_one_card(models: Models, layers: int, cards: int, pool: int, schedule: str) -> None:
    spec = tiny(layers)
    resident = models.resident(spec, passes=STEPS)
    with EmulatedDevice(nodes=cards, schedule=schedule) as device:
        run = run_fixed(lambda d: QwenModel.load_streaming(models.path(spec), d, pool), device, resident.tokens)
        left = {holder for memory in device.memories for holder in memory.use().holders}
        assert left <= {WORKSPACE}, "close() gives all memory back"
    clean(run)
    assert same_bytes(resident.logits, run.logits)


MATRIX = [
    f"{cards} cards, {layers} layers, {pool} slots, {kind}"
    for kind in ("plain", "coded", "cache in pages")
    for cards in (2, 1, 3, 4, 8)
    for layers in (7, 6, 24, 28)
    for pool in (2, 1, 3)
]


@pytest.mark.parametrize("case", sampled(MATRIX))
def test_any_number_of_cards(models: Models, case: str) -> None:
    cards, layers, pool = (int(number) for number in re.findall(r"\d+", case))
    spec = tiny(layers, dtype="bfloat16")
    path, resident = models.path(spec), models.resident(spec, passes=STEPS)
    with EmulatedDevice(nodes=min(cards, layers), spec=GPU_SPECS["h200"]) as device:

        def load(d: EmulatedDevice) -> QwenModel:
            if "coded" in case:
                return QwenModel.load_compressed(path, d, pool)
            if "pages" in case:
                cache = paged_cache(3 * 512, page_bytes=512)
                return QwenModel(weights(path), d, streaming_layers(pool), make_cache=cache)
            return QwenModel.load_streaming(path, d, pool)

        run = run_fixed(load, device, resident.tokens)
        left = {holder for memory in device.memories for holder in memory.use().holders}
        assert left <= {WORKSPACE}, "close() gives all memory back"
    clean(run)
    assert same_bytes(resident.logits, run.logits)


@pytest.mark.parametrize("kind", ["resident", "serial", "planned", "planned, coded"])
def test_every_residency_of_dense_layers(models: Models, kind: str) -> None:
    spec = tiny(7, dtype="bfloat16")
    path, resident = models.path(spec), models.resident(spec, passes=STEPS)
    with EmulatedDevice(nodes=3) as device:

        def load(d: EmulatedDevice) -> QwenModel:
            if kind == "resident":
                return QwenModel.load(path, d)
            if kind == "serial":
                return QwenModel.load_serial(path, d)
            # Cards 0 and 1 stream two layers each; card 2 keeps its own.
            plan = dataclasses.replace(make_plan(Qwen2Config.from_file(path), Shape(64), None), streamed=(0, 1, 3, 4))
            plan = dataclasses.replace(plan, slots=2, compress="3bit" if "coded" in kind else "none")
            encoded = EncodedMemory(weights(path), "3bit") if "coded" in kind else None
            return QwenModel(weights(path), d, planned_layers(plan, encoded=encoded))

        run = run_fixed(load, device, resident.tokens)
    clean(run)
    assert same_bytes(resident.logits, run.logits)
    assert run.uploads == {"resident": 0, "serial": 7 * STEPS}.get(kind, 4 * STEPS)


def test_a_plan_for_each_card_runs_within_its_budget(models: Models) -> None:
    path = models.path(tiny(7))
    config = Qwen2Config.from_file(path)
    resident = models.resident(tiny(7), passes=STEPS, context=64)
    shape = Shape(64, chunk=PROMPT.shape[1])
    everything = plan_cards(config, shape, None, 2)
    assert not everything.streamed and [card.layers for card in everything.cards] == [4, 3]
    found = plan_cards(config, shape, everything.peak - layer_layout(config).nbytes, 2)
    assert found.streamed and found.resident + len(found.streamed) == 7
    with EmulatedDevice(nodes=2, memory=found.peak) as device:
        run = run_fixed(
            lambda d: QwenModel(
                weights(path), d, planned_layers(found), context=64, chunk=shape.chunk,
                host_embedding=found.host_embedding,
            ),
            device,
            resident.tokens,
        )  # fmt: skip
        peaks = [memory.use().peak for memory in device.memories]
        assert all(peak <= card.peak for peak, card in zip(peaks, found.cards, strict=True))
    clean(run)
    assert same_bytes(resident.logits, run.logits)
    assert run.uploads == len(found.streamed) * STEPS
    with pytest.raises(RequestError, match="not enough"):
        plan_cards(config, shape, layer_layout(config).nbytes, 2)


def weights(path):
    from xinfer_lab.qwen2.checkpoint import Checkpoint
    from xinfer_lab.residency.weights import CheckpointWeights

    return CheckpointWeights(Checkpoint.open(path))


def streamed(models: Models, layers: int = 6, coded_slots: int = 0) -> EmulatedDevice:
    """Two passes over two cards through two slots on each, or through so many for coded layers."""
    device, path = EmulatedDevice(nodes=2, spec=GPU_SPECS["h200"]), models.path(tiny(layers, dtype="bfloat16"))

    def load(d: EmulatedDevice) -> QwenModel:
        return QwenModel.load_compressed(path, d, coded_slots) if coded_slots else QwenModel.load_streaming(path, d, 2)

    greedy_run(load, device, PROMPT, 2)
    return device


@pytest.mark.parametrize(("layers", "coded_slots"), [(6, 0), (7, 4)])
def test_every_wait_between_cards_is_needed(models: Models, layers: int, coded_slots: int) -> None:
    device = streamed(models, layers, coded_slots)
    records = list(device.stream)
    signaller = {r.fence: r.queue for r in records if r.op == "signal"}
    between = [
        i
        for i, record in enumerate(records)
        if isinstance(record, Wait)
        and (node_of(signaller[record.fence]) != node_of(record.queue) or signaller[record.fence] == "relay")
    ]
    assert len(between) >= 2 * (layers - 1), "two passes go from card to card"
    for left_out in between:
        found = check_stream(CommandStream(records[:left_out] + records[left_out + 1 :]), device.kernels)
        wait = records[left_out]
        assert found.hazards, (left_out, wait)
        first = found.hazards[0].report()
        assert f"{wait.queue} queue" in first and f"{signaller[wait.fence]} queue" in first, first


def test_every_signal_between_cards_is_needed(models: Models) -> None:
    """Without a signal its wait is early, which a device refuses; without both, the report names both nodes' queues."""
    device = streamed(models, 7, 4)
    records = list(device.stream)
    waits = [(i, record) for i, record in enumerate(records) if isinstance(record, Wait)]
    between = []
    for i, signal in enumerate(records):
        if signal.op == "signal":
            for_it = [(w, r.queue) for w, r in waits if (r.fence, r.value) == (signal.fence, signal.value)]
            if len(for_it) == 1 and node_of(for_it[0][1]) != node_of(signal.queue):
                between.append((i, for_it[0][0]))
    assert len(between) >= 10
    for signal, wait in between:
        rest = [record for i, record in enumerate(records) if i not in (signal, wait)]
        first = check_stream(CommandStream(rest), device.kernels).hazards[0].report()
        assert f"{records[signal].queue} queue" in first and f"{records[wait].queue} queue" in first, first


def test_a_signal_left_out_is_refused_as_it_is_waited_for(monkeypatch: pytest.MonkeyPatch, models: Models) -> None:
    from xinfer_lab.device.queue import CommandQueue

    signal = CommandQueue.signal

    def all_but_one(queue: CommandQueue, fence, value):
        if queue.name == "direct@1" and fence.name.startswith("handed over"):
            return
        signal(queue, fence, value)

    monkeypatch.setattr(CommandQueue, "signal", all_but_one)
    with pytest.raises(EarlyWait, match=r"handed over@1"):
        streamed(models)


def test_an_operand_of_another_card_is_refused() -> None:
    with EmulatedDevice(nodes=2) as device:
        x, y = (device.create_buffer(256, name, node=node) for name, node in (("x", 0), ("y", 1)))
        with pytest.raises(BufferRangeError, match="'x' lies on node 0, and the direct@1 queue computes on node 1"):
            device.nodes[1].direct_queue.dispatch(
                "embed",
                tokens=x.view("int64", (1, 2)),
                weight=y.view(torch.float32, (4, 2)),
                out=y.view(torch.float32, (1, 2, 2)),
            )
        with pytest.raises(StreamError, match="'z' cannot lie on node 2"):
            device.create_buffer(256, "z", node=2)
    with pytest.raises(ValueError, match="at least one node"):
        EmulatedDevice(nodes=0)


def test_each_card_has_a_budget_of_its_own(models: Models) -> None:
    with EmulatedDevice(nodes=2) as free:
        greedy_run(lambda d: QwenModel.load_streaming(models.path(tiny(6, tied=True)), d, 2), free, PROMPT, 2)
        first, second = (memory.use().peak for memory in free.memories)
    assert second < first, "a tied embedding, which is the head too, lies on the first card"
    with EmulatedDevice(nodes=2, memory=first) as device:
        greedy_run(lambda d: QwenModel.load_streaming(models.path(tiny(6, tied=True)), d, 2), device, PROMPT, 2)
    with EmulatedDevice(nodes=2, memory=second) as device, pytest.raises(OutOfDeviceMemory):
        greedy_run(lambda d: QwenModel.load_streaming(models.path(tiny(6, tied=True)), d, 2), device, PROMPT, 2)


def over(device: SimulatedDevice) -> float:
    return max(event.end for event in device.timeline().events)


def decode_time(size: str, cards: int, layers: int | None = None) -> float:
    """Seconds of a decode pass at the published ``size`` on ``cards`` H200s, by the virtual clock."""
    config = PUBLISHED[size]
    config = dataclasses.replace(config, num_hidden_layers=layers or config.num_hidden_layers)
    with SimulatedDevice(GPU_SPECS["h200"], memory=None, nodes=cards) as device:
        model = QwenModel(SizedWeights(config), device, streaming_layers(2), context=16, chunk=1)
        model.begin(4)  # A pass that others follow uploads as many layers as it uses.
        token = torch.zeros(1, 1, dtype=torch.int64, device="cpu")
        model.forward(token)
        model.forward(token)
        start = over(device)
        model.forward(token)
        took = over(device) - start
        model.close()
    assert not device.findings(), device.findings().report()
    return took


def test_links_bring_layers_at_once() -> None:
    """64 layers that G divides: G links are nearly G times as fast; the head and the state's way take the rest."""
    one = decode_time("32b", 1)
    for cards in (2, 4, 8):
        assert 0.97 * cards < one / decode_time("32b", cards) < 1.01 * cards


@pytest.mark.parametrize(("size", "layers"), [("0.5b", 23), ("1.5b", 27), ("32b", 15), ("32b", 63)])
def test_odd_layers_come_over_all_links(size: str, layers: int) -> None:
    assert 1.95 < decode_time(size, 1, layers) / decode_time(size, 2, layers) < 2.01


@pytest.mark.parametrize(("cards", "layers"), [(4, 13), (4, 15), (8, 61)])
def test_odd_layers_come_over_any_number_of_links(cards: int, layers: int) -> None:
    assert 0.95 * cards < decode_time("32b", 1, layers) / decode_time("32b", cards, layers) < 1.01 * cards


def test_staged_layers_and_cards_that_do_not_reach_each_other_relay_nothing(models: Models) -> None:
    path = models.path(tiny(7))
    for spec, tier in (("h200", "pinned"), ("h200", "staged"), ("rtx4090", "pinned")):
        device = EmulatedDevice(nodes=2, spec=GPU_SPECS[spec])
        run = greedy_run(lambda d, tier=tier: QwenModel.load_streaming(path, d, 2, host_memory=tier), device, PROMPT, 2)
        clean(run)
        assert ("relay" in device.queues) == ((spec, tier) == ("h200", "pinned"))


def test_what_cannot_be_spread_says_so(models: Models) -> None:
    path = models.path(tiny(6))
    with EmulatedDevice(nodes=7) as device, pytest.raises(RequestError, match="6 layers cannot be spread over 7 cards"):
        QwenModel.load_streaming(path, device, 2)
    with EmulatedDevice(nodes=2) as device, pytest.raises(RequestError, match="PagedLayers runs on one card"):
        QwenModel(weights(path), device, paged_layers(2**20, page_bytes=4096))
    with EmulatedDevice(nodes=2) as device:
        assert not device.memory.use().holders
        QwenModel(weights(path), device, resident_layers()).close()


def test_names() -> None:
    assert [on_node("copy", 0), on_node("copy", 3)] == ["copy", "copy@3"]
    assert [node_of("copy"), node_of("copy@3"), node_of("a@b")] == [0, 3, 0]


def test_timeline_has_a_lane_for_each_queue_of_each_card(models: Models) -> None:
    device = streamed(models)
    timeline = streamed(models, 7).timeline()
    assert lane_names(timeline) == ("direct", "copy", "relay", "direct@1", "copy@1", "host")
    trace = perfetto_json(timeline)
    assert problems(trace) == []
    named = [event for event in trace["traceEvents"] if event["ph"] == "M"]
    assert {e["pid"]: e["args"]["name"] for e in named if e["name"] == "process_name"}[2] == "card 1"
    lanes = {event["args"]["name"].partition(" ")[0]: event["pid"] for event in named if event["name"] == "thread_name"}
    assert lanes == {"direct": 1, "copy": 1, "relay": 1, "host": 1, "direct@1": 2, "copy@1": 2}
    computed = {queue_of(r) for r in device.stream if r.op == "dispatch" and r.label.startswith("layer")}
    assert computed == {"direct", "direct@1"}


def test_commands(models: Models) -> None:
    path = models.path(tiny(6))
    done = invoke("parity", str(path), "--stream-layers", "2", "--devices", "2")
    assert done.exit_code == 0 and done.output.splitlines()[-1] == "streaming vs resident max abs diff = 0"
    assert "on 2 cards of emulated" in done.output
    done = invoke("parity", str(path), "--devices", "7")
    assert "6 layers cannot be spread over 7 cards; use 6 cards or fewer" in refused(done)
    done = invoke("parity", str(path), "--device", "cuda", "--devices", "2")
    assert "--devices belongs to the emulated device" in refused(done)
    done = invoke("simulate", "0.5b", "--gpus", "5", "--tokens", "4", "--steps", "2")
    assert "at most 4.8 times one link's rate, since 24 layers over 5 cards leave 5 to some" in done.output
    done = invoke("simulate", "0.5b", "--gpus", "5", "--tokens", "4", "--steps", "2", "--gpu", "h200")
    assert "of 24 layers each brings 4, and the 4 odd layers come in parts over all of them" in done.output
    done = invoke("plan", "32b", "--gpus", "3", "--gpu", "h200", "--vram", "12GiB")
    assert done.exit_code == 0 and "64 layers over 3 cards leave 22 to some, which bind" in done.output
    assert "24 layers cannot be spread over 30 cards" in refused(invoke("plan", "0.5b", "--gpus", "30"))
    done = invoke("generate", str(path), "--tokens", "1,2", "--max-new-tokens", "2", "--devices", "3")
    assert done.exit_code == 0 and "on 3 cards of emulated" in done.stderr
    assert "cuda:0,cuda:1" in refused(invoke("generate", str(path), "--tokens", "1", "--device", "cuda:0,1"))
