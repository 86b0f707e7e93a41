"""On a GPU: layers over several nodes, on one card or on two. The bytes are one card's, with peer access or without."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch

from tests.models import Models, assert_clean, assert_equal
from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.device.errors import CudaUnavailable
from xinfer_lab.device.gpu_spec import KERNEL_COPY
from xinfer_lab.device.records import Copy
from xinfer_lab.qwen2 import Checkpoint, Qwen2Config, SyntheticSpec
from xinfer_lab.residency.codec.encoded import EncodedMemory
from xinfer_lab.residency.factories import (
    SourceFactory,
    compressed_layers,
    planned_layers,
    resident_layers,
    serial_layers,
    streaming_layers,
)
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.paged_cache import paged_cache
from xinfer_lab.residency.parity import Run, run_fixed
from xinfer_lab.residency.plan import Shape, make_plan
from xinfer_lab.residency.weights import CheckpointWeights

pytestmark = pytest.mark.cuda

STEPS = 5
FEED = (torch.arange(30).view(1, 30) % 256, *(torch.tensor([[3 * step + 1]]) for step in range(STEPS)))


def cards_here() -> list[tuple[int, ...]]:
    """One card as two nodes and as three; two cards where there are two."""
    return [(0, 0), (0, 0, 0), *([(0, 1)] if torch.cuda.device_count() > 1 else [])]


def small(layers: int) -> SyntheticSpec:
    return SyntheticSpec(layers=layers, hidden=256, heads=8, kv_heads=2, intermediate=704, dtype="bfloat16")


def weights(models: Models, spec: SyntheticSpec) -> CheckpointWeights:
    return CheckpointWeights(Checkpoint.open(models.path(spec)))


def run(models: Models, spec: SyntheticSpec, factory: SourceFactory, device: CudaDevice, **shape) -> Run:
    return run_fixed(
        lambda device: QwenModel(weights(models, spec), device, factory, **{"context": 64, **shape}), device, FEED
    )


def planned(models: Models, spec: SyntheticSpec, compress: str = "none") -> SourceFactory:
    plan = make_plan(Qwen2Config.from_file(models.path(spec)), Shape(64), None)
    plan = dataclasses.replace(plan, streamed=tuple(range(1, spec.layers)), slots=2, compress=compress)
    return planned_layers(plan, encoded=EncodedMemory(weights(models, spec), compress) if compress != "none" else None)


def factories(models: Models, spec: SyntheticSpec) -> dict[str, SourceFactory]:
    coded = EncodedMemory(weights(models, spec), "3bit")
    return {
        "resident": resident_layers(),
        "serial": serial_layers(),
        "2 slots": streaming_layers(2),
        "3 slots, staged": streaming_layers(3, "staged"),
        "registered": streaming_layers(2, "registered"),
        "planned": planned(models, spec),
        "coded, planned": planned(models, spec, "4bit"),
        "coded, 2 slots": compressed_layers(coded, range(spec.layers), 2),
    }


@pytest.mark.parametrize("layers", [6, 7])
def test_every_residency_gives_one_cards_bytes(models: Models, layers: int) -> None:
    spec = small(layers)
    with CudaDevice() as device:
        right = run(models, spec, resident_layers(), device)
    for cards in cards_here():
        for name, factory in factories(models, spec).items():
            ways = ({}, {"graphs": False, "peer_access": False}, {"check": True}, {"measure": True})
            for options in ways if len(cards) == 2 else ways[:1]:
                with CudaDevice(cards, **options) as device:
                    found = run(models, spec, factory, device)
                    left = {holder for memory in device.memories for holder in memory.use().holders}
                assert_clean(found)
                assert_equal(right, found)
                assert not any(holder.startswith(("slot", "layer", "kv", "hidden")) for holder in left), name


def test_a_cache_in_pages_on_each_card(models: Models) -> None:
    spec = small(6)
    with CudaDevice() as device:
        right = run(models, spec, resident_layers(), device)
    for cards in cards_here():
        for check in (False, True):
            with CudaDevice(cards, check=check) as device:
                found = run(models, spec, streaming_layers(2), device, make_cache=paged_cache(5 * 2**14, "lru", 2**14))
            assert_clean(found)
            assert_equal(right, found)


def test_odd_layers_are_relayed(models: Models) -> None:
    """Seven layers: four on the first card, the last of which comes half over each link."""
    with CudaDevice((0, 0)) as device:
        run(models, small(7), streaming_layers(2), device)
        relayed = [r for r in device.stream if isinstance(r, Copy) and r.queue == "relay"]
        assert len(relayed) >= len(FEED)
    with CudaDevice((0, 0), peer_access=False) as device:
        run(models, small(7), streaming_layers(2), device)
        assert "relay" not in device.queues


def test_each_node_captures_its_own_graphs(models: Models) -> None:
    with CudaDevice((0, 0)) as device:
        run(models, small(6), resident_layers(), device)
        # Three layers on each; the first embeds, the last has the head.
        assert [graphs.captured for graphs in device._graphs.values()] == [3 + 1, 3 + 1]


@pytest.mark.parametrize("peer_access", [True, False])
@pytest.mark.parametrize("size", [4096, KERNEL_COPY, 2**25])
@pytest.mark.parametrize("pull", [True, False])
def test_copies_between_nodes_keep_their_place(peer_access: bool, size: int, pull: bool) -> None:
    """Each copy comes after what its queue had before, and before what it gets next: many in a row, no host wait."""
    for cards in cards_here():
        for check in (False, True):
            with CudaDevice(cards, peer_access=peer_access, check=check) as device:
                there = [device.create_buffer(size, f"x{node}", node=node) for node in (0, 1)]
                sent = device.create_upload_heap(8 * size)
                seen = device.create_readback_heap(8 * size)
                values = torch.arange(8 * size, dtype=torch.int64).remainder_(251).to(torch.uint8)
                for turn in range(8):
                    values[turn * size : (turn + 1) * size] += turn
                sent.write(0, values)
                first, second = (node.direct_queue for node in device.nodes[:2])
                went, came = device.create_fence("went"), device.create_fence("came")
                for turn in range(8):
                    first.copy(there[0], sent.span(turn * size, size))
                    if pull:
                        first.signal(went, turn + 1)
                        second.wait(went, turn + 1)
                        second.copy(there[1], there[0])
                    else:
                        first.copy(there[1], there[0])
                        first.signal(went, turn + 1)
                        second.wait(went, turn + 1)
                    second.copy(seen.span(turn * size, size), there[1])
                    second.signal(came, turn + 1)
                    first.wait(came, turn + 1)
                came.wait(8)
                assert torch.equal(seen.read("uint8", (8 * size,)), values)
                assert not device.findings()


def test_times_of_both_cards_have_one_origin(models: Models) -> None:
    for cards in cards_here():
        with CudaDevice(cards, measure=True) as device:
            run(models, small(6), streaming_layers(2), device)
            timeline = device.timeline()
        assert {"direct", "copy", "direct@1", "copy@1"} <= {event.lane for event in timeline.events}
        # Each layer begins after the layer before it, on the other card, up to some microseconds between two clocks.
        layers = [e for e in timeline.events if e.kind == "dispatch" and e.label.startswith("layer ")]
        assert all(later.start >= earlier.end - 1e-4 for earlier, later in itertools.pairwise(layers))


def test_a_device_is_current_again_after_a_run(models: Models) -> None:
    before = torch.cuda.current_device()
    for cards in cards_here():
        with CudaDevice(cards) as device:
            run(models, small(6), streaming_layers(2), device)
        assert torch.cuda.current_device() == before


def test_a_card_that_is_not_there_says_so() -> None:
    with pytest.raises(CudaUnavailable, match="there is no CUDA device cuda:99"):
        CudaDevice((0, 99))
