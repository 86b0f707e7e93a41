"""On a GPU: layers and cache in pages give the resident bytes, both directions of the link run at once, and a wait that
is left out is found there too.
"""

from __future__ import annotations

import pytest
import torch

from tests.models import Models, assert_clean, assert_equal
from tests.mutants import Statement, statements, without
from tests.pool_programs import Witness, kernels
from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.device.device import WRITE_BACK
from xinfer_lab.device.errors import HazardError
from xinfer_lab.paging import transfers
from xinfer_lab.paging.extent import PAGE_BYTES
from xinfer_lab.paging.policy import POLICIES
from xinfer_lab.paging.pool import HybridMemoryPool
from xinfer_lab.qwen2 import Checkpoint, SyntheticSpec, layer_layout
from xinfer_lab.residency.cache import contiguous_cache
from xinfer_lab.residency.factories import paged_layers, resident_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.paged import layer_pages
from xinfer_lab.residency.paged_cache import paged_cache
from xinfer_lab.residency.parity import Run, greedy_run, run_fixed
from xinfer_lab.residency.weights import CheckpointWeights

pytestmark = pytest.mark.cuda

PROMPT = torch.arange(150).view(1, 150) % 256
PASSES, CONTEXT = 5, 192


def small(dtype: str) -> SyntheticSpec:
    """Small, but of sizes that fused kernels take."""
    return SyntheticSpec(layers=6, hidden=256, heads=8, kv_heads=2, intermediate=704, dtype=dtype)


def run(models: Models, spec: SyntheticSpec, device, feed, source=None, cache=contiguous_cache) -> Run:
    def load(device):
        with Checkpoint.open(models.path(spec)) as checkpoint:
            return QwenModel(
                CheckpointWeights(checkpoint), device, source or resident_layers(), context=CONTEXT, make_cache=cache
            )

    return greedy_run(load, device, PROMPT, PASSES) if feed is None else run_fixed(load, device, feed)


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_layers_and_cache_in_pages_equal_the_resident_model(models: Models, dtype: str, policy: str, check: bool):
    spec = small(dtype)
    with CudaDevice() as device:
        right = run(models, spec, device, None)
    a_layer = layer_pages(layer_layout(spec.config()), 2**16) * 2**16
    for source, cache in (
        (paged_layers(3 * a_layer, policy, 2**16), contiguous_cache),
        (None, paged_cache(5 * 2**14, policy, 2**14)),
        (paged_layers(2 * a_layer, policy, 2**16), paged_cache(2 * 2**14, policy, 2**14)),
    ):
        with CudaDevice(check=check) as device:
            paged = run(models, spec, device, right.tokens, source, cache)
            peak = device.memory.use().peak
        assert_equal(right, paged)
        if check:
            assert_clean(paged)
        assert peak == paged.memory.peak


def scan(device, pages: int = 24, rounds: int = 4) -> HybridMemoryPool:
    """Every page is used in every round, and every other one written, through a third of the frames."""
    pool = HybridMemoryPool(device, frames=pages // 3, pages=pages, policy="lru")
    witness = Witness(device, rounds * pages * PAGE_BYTES)
    extents = [pool.create(PAGE_BYTES) for _ in range(pages)]
    for value in range(rounds):
        for number, extent in enumerate(extents):
            write = value == 0 or number % 2 == 1
            pool.acquire(extent, write=write)
            if write:
                witness.stamp(pool, extent, value)
            else:
                witness.peek(pool, extent, bytes(PAGE_BYTES))
            pool.release(extent)
    witness.check()
    last = [pool.read(extent).unique().tolist() for extent in extents]
    assert last == [[(rounds - 1) * (number % 2)] for number in range(pages)]
    return pool


def test_pages_go_both_ways_at_once():
    with CudaDevice(kernels=kernels(), measure=True) as device:
        scan(device)
        device.wait_idle()
        events = [event for event in device.timeline().events if event.kind == "copy"]
    there = [event for event in events if event.lane == "copy"]
    back = [event for event in events if event.lane == WRITE_BACK]
    assert there
    assert back
    assert any(a.start < b.end and b.start < a.end for a in there for b in back)


def test_frames_are_allocated_once():
    with CudaDevice(kernels=kernels()) as device:
        before = torch.cuda.memory_allocated()
        pool = HybridMemoryPool(device, frames=16, pages=64)
        held = torch.cuda.memory_allocated()
        assert held - before == 16 * PAGE_BYTES
        extents = [pool.create(PAGE_BYTES) for _ in range(64)]
        for extent in extents * 2:
            pool.acquire(extent, write=True)
            pool.release(extent)
        device.wait_idle()
        assert torch.cuda.memory_allocated() == held
        pool.close()
        assert torch.cuda.memory_allocated() == before


ORDERS = [found for found in statements(transfers) if found.verb == "hold" and found.function in ("bring", "save")]


@pytest.mark.parametrize("wait", [w for w in ORDERS if "_sent" not in w.text], ids=str)
def test_a_wait_that_is_left_out_is_found_before_the_command_is_issued(wait: Statement):
    with CudaDevice(kernels=kernels(), check=True) as device, without(wait), pytest.raises(HazardError):
        scan(device)


def test_the_next_device_computes_where_the_library_has_its_workspace():
    """A third stream does not push the direct queue's stream away from the next device."""
    with CudaDevice() as device:
        _ = device.write_back_queue
        direct = device._streams["direct"]
    with CudaDevice() as device:
        assert device._streams["direct"] == direct
