"""On a GPU: the same bytes from every residency, a dropped wait reported, copies beside compute, memory as planned.

Streamed and resident runs are compared on the same device; against the CPU bytes differ, as they may.
"""

from __future__ import annotations

import gc
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
import torch

from tests.models import Models, assert_clean, assert_equal, uploads
from tests.mutants import Statement, statements, without
from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.device.device import Device
from xinfer_lab.device.errors import EarlyWait, HazardError, OutOfDeviceMemory
from xinfer_lab.device.graphs import GRAPH_MEMORY
from xinfer_lab.device.timeline import Timeline, TimelineEvent
from xinfer_lab.qwen2 import Checkpoint, Qwen2Config, SyntheticSpec, layer_layout
from xinfer_lab.residency import serial, streaming
from xinfer_lab.residency.factories import SourceFactory, resident_layers, serial_layers, streaming_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.parity import Run, greedy_run, run_fixed
from xinfer_lab.residency.weights import CheckpointWeights, SizedWeights

pytestmark = pytest.mark.cuda

PROMPT = torch.tensor([[5, 3, 60, 17, 2, 9, 33]])
PASSES = 4


def small(layers: int, **options: object) -> SyntheticSpec:
    """Small, but of sizes that fused kernels take."""
    return SyntheticSpec(**{"layers": layers, "hidden": 256, "heads": 8, "kv_heads": 2, "intermediate": 704, **options})


def resident(models: Models, spec: SyntheticSpec, prompt: torch.Tensor = PROMPT, **shape: int | None) -> Run:
    """What the resident model makes of ``prompt`` and of the tokens that it chooses itself."""
    with CudaDevice() as device:
        return greedy_run(lambda device: QwenModel.load(models.path(spec), device, **shape), device, prompt, PASSES)


# Parity


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_an_embedding_on_the_host_gives_the_same_bytes(models: Models, dtype: str) -> None:
    spec = small(6, dtype=dtype)
    right = resident(models, spec, context=64)

    def load(device: Device) -> QwenModel:
        weights = CheckpointWeights(Checkpoint.open(models.path(spec)))
        return QwenModel(weights, device, streaming_layers(2), context=64, host_embedding=True)

    with CudaDevice(check=True) as device:
        assert_equal(right, greedy_run(load, device, PROMPT, PASSES))
        assert "embedding" not in device.memory.use().holders


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("layers", [6, 7])
def test_streaming_matches_resident(models: Models, layers: int, dtype: str) -> None:
    spec = small(layers, dtype=dtype)
    right = resident(models, spec, context=64)
    assert_equal(right, resident(models, spec, context=64))
    for pool in (1, 2, 3, 5, layers):
        with CudaDevice() as device:
            streamed = models.streamed(spec, pool, device, right.tokens, context=64)
            slots = max(2, pool)
            if slots < layers:
                wanted = [(step % layers, f"slot[{step % slots}]") for step in range(PASSES * layers)]
                assert uploads(device.stream.records) == wanted
        assert_equal(right, streamed)


@pytest.mark.parametrize("load", ["staged", "registered", "auto", "serial", "serial, staged", "serial, registered"])
def test_every_host_memory_and_serial_layers_match_resident(models: Models, load: str) -> None:
    spec = small(7, dtype="bfloat16", shards=2)
    right = resident(models, spec, context=64)
    host_memory = load.rpartition(", ")[2]
    host_memory = "pinned" if host_memory == "serial" else host_memory
    opener = QwenModel.load_serial if "serial" in load else QwenModel.load_streaming
    with CudaDevice() as device:
        other = run_fixed(
            lambda device: opener(models.path(spec), device, host_memory=host_memory, context=64), device, right.tokens
        )
    assert_equal(right, other)


@pytest.mark.parametrize(
    ("options", "shape", "length"),
    [
        ({"tied": True}, {"batch": 3}, 7),
        ({"shards": 3}, {"positions": None}, 40),
        ({"dtype": "bfloat16"}, {"batch": 2, "context": 700}, 513),
        ({"dtype": "float16"}, {"context": 2048}, 1500),
    ],
)
def test_other_shapes_match_too(
    models: Models, options: dict[str, object], shape: dict[str, int | None], length: int
) -> None:
    spec = small(6, **options)
    prompt = torch.arange((shape.get("batch") or 1) * length).view(-1, length) % 256
    right = resident(models, spec, prompt, **shape)
    with CudaDevice() as device:
        assert_equal(right, models.streamed(spec, 2, device, right.tokens, **shape))


def test_a_chunked_prefill_matches_in_both_residencies(models: Models) -> None:
    spec, prompt = small(7, dtype="bfloat16"), torch.arange(300).view(1, 300) % 256
    runs: list[list[torch.Tensor]] = []
    for factory in (resident_layers(), streaming_layers(3)):
        logits = []
        with CudaDevice() as device, opened(models, spec, device, factory, context=320, chunk=128) as model:
            model.begin(5)
            for tokens in (*prompt.split(128, dim=1), prompt[:, :1], prompt[:, 1:2]):
                logits.append(model.forward(tokens))
        runs.append(logits)
    assert_equal(*runs)


def opened(models: Models, spec: SyntheticSpec, device: CudaDevice, factory: SourceFactory, **shape: int) -> QwenModel:
    from xinfer_lab.qwen2 import Checkpoint
    from xinfer_lab.residency.weights import CheckpointWeights

    return QwenModel(CheckpointWeights(Checkpoint.open(models.path(spec))), device, factory, **shape)


def test_check_mode_finds_nothing_and_changes_nothing(models: Models) -> None:
    spec = small(7, dtype="bfloat16")
    right = resident(models, spec, context=64)
    with CudaDevice(check=True) as device:
        streamed = models.streamed(spec, 3, device, right.tokens, context=64)
    assert_clean(streamed)
    assert_equal(right, streamed)


def test_models_follow_one_another_on_a_device(models: Models) -> None:
    spec = small(6)
    with CudaDevice() as device:
        for seed in (1, 2, 1):
            other = small(6, seed=seed)
            right = resident(models, other, context=64)
            assert_equal(right, models.streamed(other, 2, device, right.tokens, context=64))
        right = resident(models, spec, context=64)
        assert_equal(right, models.streamed(spec, 3, device, right.tokens, context=64))


@pytest.mark.parametrize("kind", ["resident", "streaming", "serial"])
def test_an_error_in_a_pass_leaves_the_sequence_as_it_was(models: Models, kind: str) -> None:
    spec = small(6, dtype="bfloat16")
    right = resident(models, spec, context=64)
    factory = {"resident": resident_layers(), "streaming": streaming_layers(2), "serial": serial_layers()}[kind]

    def interrupt(layer: int, hidden: torch.Tensor) -> None:
        if layer == 2:
            raise KeyboardInterrupt

    logits = []
    with CudaDevice() as device, opened(models, spec, device, factory, context=64) as model:
        model.begin(PASSES)
        for tokens in right.tokens:
            with pytest.raises(KeyboardInterrupt):
                model.forward(tokens, on_layer=interrupt)
            logits.append(model.forward(tokens))
    assert_equal(right.logits, logits)


# Missing statements


NEEDED = [s for s in statements(streaming, serial) if s.function != "close"]


@pytest.mark.parametrize("statement", NEEDED, ids=str)
def test_a_missing_statement_is_reported_before_the_race(models: Models, statement: Statement) -> None:
    spec = small(6)
    opener = QwenModel.load_streaming if statement.module is streaming else QwenModel.load_serial
    with (
        without(statement),
        pytest.raises((HazardError, EarlyWait)) as caught,
        CudaDevice(check=True) as device,
        opener(models.path(spec), device, context=64) as model,
    ):
        model.begin(PASSES)
        for _ in range(PASSES):
            model.forward(PROMPT)
    report = str(caught.value)
    if statement.verb == "signal":
        assert "consumed" in report
    elif statement.verb == "assume_common":
        assert "stale tracker" in report
    else:
        assert "  missing  " in report
        assert report.count(".py:") >= 2


# Memory


def test_a_failed_load_gives_device_memory_back(models: Models) -> None:
    spec = small(6)
    with CudaDevice() as probe, QwenModel.load_streaming(models.path(spec), probe, 3, context=64):
        needed = probe.memory.use().used
    with CudaDevice(memory=needed - 1) as device:
        before, used = torch.cuda.memory_allocated(), device.memory.use().used
        with pytest.raises(OutOfDeviceMemory):
            QwenModel.load_streaming(models.path(spec), device, 3, context=64)
        gc.collect()
        assert device.memory.use().used == used
        assert torch.cuda.memory_allocated() == before
        QwenModel.load_streaming(models.path(spec), device, 2, context=64).close()
        gc.collect()
        assert torch.cuda.memory_allocated() == before


def test_pinned_bytes_equal_planned_bytes(models: Models) -> None:
    import mmap

    spec = small(6)
    with CudaDevice() as device, QwenModel.load_streaming(models.path(spec), device, 2, context=64):
        pinned = {name: memory.pinned_bytes for name, memory in device._pinned.items() if name.startswith("host.layer")}
        planned = layer_layout(spec.config()).nbytes
        assert len(pinned) == 6
        assert all(planned <= size < planned + mmap.PAGESIZE for size in pinned.values())


# A real layer: the shape of the 7B model, few layers, bfloat16


LAYERS_7B, TOKENS_7B = 6, 4096
CONFIG_7B = Qwen2Config(
    hidden_size=3584,
    num_hidden_layers=LAYERS_7B,
    num_attention_heads=28,
    num_key_value_heads=4,
    head_dim=128,
    intermediate_size=18944,
    vocab_size=1024,
    max_position_embeddings=32768,
    dtype=torch.bfloat16,
)


class DrawnWeights(SizedWeights):
    """Weights that the GPU draws, by name and without a file: the same each time on the same machine."""

    def bytes(self, name: str) -> torch.Tensor:
        """The tensor's bytes, drawn anew."""
        size = self.nbytes(name)
        assert size is not None
        generator = torch.Generator("cuda").manual_seed(zlib.crc32(name.encode()))
        drawn = torch.randn(size // 2, device="cuda", generator=generator)
        scaled = 1 + 0.1 * drawn if "norm" in name else 0.02 * drawn
        return scaled.to(torch.bfloat16).cpu().view(torch.uint8)


@pytest.fixture
def room() -> Iterator[None]:
    """The allocator's cache is empty, before and after."""
    gc.collect()
    torch.cuda.empty_cache()
    yield
    gc.collect()
    torch.cuda.empty_cache()


def prefill_7b(factory: SourceFactory, **options: object) -> tuple[list[torch.Tensor], Timeline | None]:
    """Two prefills of 4,096 tokens (the first warms the libraries up) and two decode steps."""
    prompt = torch.arange(TOKENS_7B).view(1, TOKENS_7B) % 1024
    with (
        CudaDevice(**options) as device,
        QwenModel(DrawnWeights(CONFIG_7B), device, factory, context=TOKENS_7B + 2, chunk=TOKENS_7B) as model,
    ):
        model.forward(prompt)
        model.reset()
        model.begin(3)
        logits = [model.forward(prompt), model.forward(prompt[:, :1]), model.forward(prompt[:, 1:2])]
        return logits, device.timeline() if options.get("measure") else None


def test_layers_of_the_7b_shape_stream_to_the_same_bytes(room: None) -> None:
    right, _ = prefill_7b(resident_layers())
    for pool in (2, 3):
        assert_equal(right, prefill_7b(streaming_layers(pool))[0])


def on_lane(timeline: Timeline, lane: str, kind: str, label: str) -> list[TimelineEvent]:
    return [e for e in timeline.events if (e.lane, e.kind) == (lane, kind) and e.label.startswith(label)]


def overlap(events: Sequence[TimelineEvent], others: Sequence[TimelineEvent]) -> float:
    """Seconds during which one of ``events`` and one of ``others`` were both at work."""
    return sum(max(0.0, min(a.end, b.end) - max(a.start, b.start)) for a in events for b in others)


def test_copies_overlap_compute(room: None) -> None:
    _, timeline = prefill_7b(streaming_layers(2), measure=True)
    assert timeline is not None
    copies = on_lane(timeline, "copy", "copy", "upload layer")
    computes = on_lane(timeline, "direct", "dispatch", "layer ")
    # The second prefill, whose kernels are all loaded; its last layers are beside the uploads of the decode steps.
    prefill = computes[LAYERS_7B : 2 * LAYERS_7B]
    assert [event.label for event in prefill] == [f"layer {layer}" for layer in range(LAYERS_7B)]
    # Layer 0 too: the tokens cross before the first uploads, so that it computes while layer 1 arrives.
    for event in prefill:
        assert overlap([event], copies) > 0.5 * event.duration, event
    # In order on each lane, nothing overlapping itself.
    for lane in (copies, computes):
        assert all(a.end <= b.start + 1e-6 for a, b in pairwise(lane))


def test_serial_layers_overlap_nothing(room: None) -> None:
    _, timeline = prefill_7b(serial_layers(), measure=True)
    assert timeline is not None
    copies = on_lane(timeline, "copy", "copy", "upload layer")
    computes = on_lane(timeline, "direct", "dispatch", "layer ")
    assert copies and computes
    # Events are set a few microseconds beside what they measure.
    assert overlap(computes, copies) < 0.01 * sum(event.duration for event in computes)


@pytest.mark.parametrize("pool", [None, 2])
def test_peak_memory_is_the_plans(room: None, pool: int | None) -> None:
    """cuBLAS' workspace, which torch keeps for each stream, is in the plan under its own name."""
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    factory = resident_layers() if pool is None else streaming_layers(pool)
    # The weights are drawn on the GPU while they are loaded: what that takes is not the model's.
    prompt = torch.arange(TOKENS_7B).view(1, TOKENS_7B) % 1024
    with CudaDevice() as device:
        assert "cuBLAS workspace" in device.memory.use().holders
        with QwenModel(DrawnWeights(CONFIG_7B), device, factory, context=TOKENS_7B + 2, chunk=TOKENS_7B) as model:
            gc.collect()
            torch.cuda.empty_cache()
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            model.begin(2)
            model.forward(prompt)
            model.forward(prompt[:, :1])
            measured = torch.cuda.max_memory_allocated() - before
            planned = device.memory.use().peak
    # Graphs lie in memory of the driver's, which torch's allocator does not see.
    planned -= GRAPH_MEMORY
    assert measured <= 1.02 * planned
    assert planned <= 1.02 * measured
