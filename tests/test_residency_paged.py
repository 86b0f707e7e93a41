"""Paged layers: a layer is an extent of a page pool; which of them stay is for the policy, the bytes are the same."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models import PROMPT, Models, assert_clean, assert_equal, tiny
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import OutOfDeviceMemory
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.device.records import Copy
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.paging.policy import POLICIES
from xinfer_lab.paging.pool import HybridMemoryPool
from xinfer_lab.qwen2 import Checkpoint
from xinfer_lab.qwen2.config import PUBLISHED
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.factories import paged_layers, streaming_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.paged import PagedLayers, layer_pages
from xinfer_lab.residency.parity import Run, run_fixed
from xinfer_lab.residency.weights import CheckpointWeights, SizedWeights

SCHEDULES = ("timed", "copies_first", "copies_last", "random(1)", "random(2)")


def paged(models: Models, spec, device, feed, size_in_layers: float, page_bytes: int = 1024, **options) -> Run:
    """``feed`` through a model whose page pool has room for ``size_in_layers`` layers."""
    shape = {name: options.pop(name) for name in ("context", "chunk", "batch", "positions") if name in options}

    def load(device):
        with Checkpoint.open(models.path(spec)) as checkpoint:
            weights = CheckpointWeights(checkpoint)
            frames = int(size_in_layers * layer_pages(layer_layout(weights.config), page_bytes))
            factory = paged_layers(frames * page_bytes, page_bytes=page_bytes, **options)
            return QwenModel(weights, device, factory, **shape)

    return run_fixed(load, device, feed)


def brought(device) -> list[int]:
    """The layers that were copied to the device, in order."""
    return [
        int(r.label.removeprefix("bring layer ")) for r in device.stream if getattr(r, "label", "").startswith("bring")
    ]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("layers", "room"), [(6, 2), (6, 3.4), (7, 5), (28, 9), (6, 6), (6, 50)])
def test_any_layers_in_any_pool_under_any_policy(models: Models, layers: int, room: float, policy: str) -> None:
    spec = tiny(layers)
    resident = models.resident(spec, passes=5)
    with EmulatedDevice(schedule="random(3)") as device:
        run = paged(models, spec, device, resident.tokens, room, policy=policy)
        done = brought(device)
    assert_equal(resident, run)
    assert_clean(run)
    assert run.uploads == len(done)
    assert done[: int(min(room, layers))] == list(range(int(min(room, layers))))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_any_dtype_under_any_schedule(models: Models, dtype: str, schedule: str) -> None:
    spec = tiny(7, dtype=dtype)
    resident = models.resident(spec)
    with EmulatedDevice(schedule=schedule) as device:
        run = paged(models, spec, device, resident.tokens, 3, 256)
    assert_equal(resident, run)
    assert_clean(run)


@settings(max_examples=25)
@given(data=st.data())
def test_any_page_size_and_distance(models: Models, data: st.DataObject) -> None:
    layers = data.draw(st.integers(2, 9))
    spec = tiny(layers)
    resident = models.resident(spec)
    page_bytes = 256 * data.draw(st.integers(1, 40))
    room = data.draw(st.floats(2, layers + 1))
    options = {"ahead": data.draw(st.integers(0, 4)), "policy": data.draw(st.sampled_from(POLICIES))}
    with EmulatedDevice(schedule=data.draw(st.sampled_from(SCHEDULES))) as device:
        run = paged(models, spec, device, resident.tokens, room, page_bytes, **options)
    assert_equal(resident, run)
    assert_clean(run)


@pytest.mark.parametrize("shape", [{"batch": 3}, {"batch": 2, "positions": None}, {"context": 9, "chunk": 5}])
def test_batches_and_all_positions(models: Models, shape: dict[str, int | None]) -> None:
    prompt = PROMPT if "batch" not in shape else torch.arange(5 * (shape["batch"] or 1)).view(-1, 5)
    resident = models.resident(tiny(6), prompt, **shape)
    with EmulatedDevice() as device:
        run = paged(models, tiny(6), device, resident.tokens, 2.5, **shape)
    assert_equal(resident, run)
    assert_clean(run)


@pytest.mark.parametrize(("layers", "room"), [(6, 3), (6, 5), (12, 4), (28, 9)])
def test_on_a_cyclic_scan_lru_keeps_nothing_and_belady_what_a_plan_would_keep(models: Models, layers, room) -> None:
    spec, passes = tiny(layers), 5
    resident = models.resident(spec, passes=passes)
    moved = {}
    for policy in POLICIES:
        with EmulatedDevice() as device:
            moved[policy] = paged(models, spec, device, resident.tokens, room, policy=policy).uploads
    assert moved["lru"] == moved["clock"] == passes * layers
    # Two of the extents are in transit, as the two slots of a plan: all others stay.
    assert layers + (passes - 1) * (layers - room) <= moved["belady"] <= layers + (passes - 1) * (layers - room + 2)


def test_a_pool_under_two_layers_is_refused_with_what_would_do(models: Models) -> None:
    spec = tiny(6)
    with EmulatedDevice() as device, pytest.raises(RequestError, match=r"2 layers of .* take \d+: choose .* or more"):
        paged(models, spec, device, [PROMPT], 1.9)
    assert device.memory.use().used == 0


def test_a_pool_over_the_budget_leaves_nothing_behind(models: Models) -> None:
    spec = tiny(6)
    with EmulatedDevice(memory=50_000) as device:
        with pytest.raises(OutOfDeviceMemory):
            paged(models, spec, device, [PROMPT], 5, context=8)
        assert device.memory.use().used == 0


def test_a_pool_takes_no_more_frames_than_there_are_pages(models: Models) -> None:
    with EmulatedDevice() as device:
        paged(models, tiny(6), device, [PROMPT], 50, 256)
        allocated = [r for r in device.stream if r.op == "allocate" and r.buffer == "pool.1"]
    assert allocated[0].size == 6 * 256 * layer_pages(layer_layout(tiny(6).config()), 256)


def test_a_run_may_end_early_and_another_one_follow(models: Models) -> None:
    spec = tiny(6)
    resident = models.resident(spec)
    with EmulatedDevice() as device, Checkpoint.open(models.path(spec)) as checkpoint:
        weights = CheckpointWeights(checkpoint)
        size = 3 * 1024 * layer_pages(layer_layout(weights.config), 1024)
        model = QwenModel(weights, device, paged_layers(size, "belady", 1024))
        model.begin(9)
        logits = [model.forward(tokens) for tokens in resident.tokens[:2]]
        model.reset()
        model.begin(4)
        logits += [model.forward(tokens) for tokens in resident.tokens[:4]]
        model.close()
        model.close()
        assert set(device.memory.use().holders) == {"kernel workspace"}
        assert not device.hazards
    assert_equal([*resident.logits[:2], *resident.logits[:4]], logits)


def test_layers_may_share_a_pool_with_something_else(models: Models) -> None:
    spec = tiny(6)
    resident = models.resident(spec)
    with EmulatedDevice(schedule="random(9)") as device, Checkpoint.open(models.path(spec)) as checkpoint:
        weights = CheckpointWeights(checkpoint)
        layout = layer_layout(weights.config)
        pages = layer_pages(layout, 1024)
        shared = HybridMemoryPool(device, frames=3 * pages + 1, pages=6 * pages + 1, page_bytes=1024, policy="lru")
        other = shared.create(1024, "other")
        shared.fill(other, bytes([7]) * 1024)
        shared.acquire(other)
        model = QwenModel(
            weights, device,
            lambda _, weights: PagedLayers(shared, layout, weights.config.dtype, 6, owns_pool=False),
        )  # fmt: skip
        logits = [model.forward(tokens) for tokens in resident.tokens]
        model.close()
        shared.release(other)
        assert shared.read(other).unique().tolist() == [7]
        assert len(list(shared.table)) == 1
        shared.close()
        assert not device.hazards
    assert_equal(resident, logits)


def test_a_72b_model_is_paged_through_24_gib_on_sizes_alone() -> None:
    config = PUBLISHED["72b"]
    spec = GPU_SPECS["rtx4090"]
    times, moved = {}, {}
    for name, factory in {
        "streaming": streaming_layers(2),
        "lru": paged_layers(18 * 2**30, "lru"),
        "belady": paged_layers(18 * 2**30, "belady"),
    }.items():
        device = SimulatedDevice(spec, check=False)
        model = QwenModel(SizedWeights(config), device, factory, context=64, chunk=16)
        model.begin(3)
        model.forward(torch.zeros(1, 16, dtype=torch.int64))
        model.forward(torch.zeros(1, 1, dtype=torch.int64))
        start, first = device.now, len(device.stream)
        model.forward(torch.zeros(1, 1, dtype=torch.int64))
        times[name] = device.now - start
        copies = [r for r in device.stream.records[first:] if isinstance(r, Copy) and r.queue == "copy"]
        moved[name] = sum(copy.dst.size for copy in copies)
        model.close()
    layer = layer_layout(config).nbytes
    assert moved["lru"] <= 80 * layer
    assert moved["belady"] <= 74 * layer
    assert 0.97 < times["lru"] / times["streaming"] < 1.03
    assert times["belady"] < 0.93 * times["lru"]
