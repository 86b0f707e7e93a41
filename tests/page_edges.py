"""Programs on page pools and on models in pages, in which each wait and signal of theirs has something to order."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from tests.models import PROMPT, Models, tiny
from tests.pool_programs import PAGE, Fault, FaultyDevice, Witness, kernels
from xinfer_lab.device.device import Device
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.ordering import Ordering
from xinfer_lab.paging.extent import Extent
from xinfer_lab.paging.pool import HybridMemoryPool
from xinfer_lab.qwen2 import Checkpoint
from xinfer_lab.qwen2.layout import expert_layout, layer_layout
from xinfer_lab.residency.cache import cache_shape, contiguous_cache
from xinfer_lab.residency.experts import expert_layers, resident_experts
from xinfer_lab.residency.factories import resident_layers
from xinfer_lab.residency.kernels import layer_params
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.paged import PagedLayers, layer_pages
from xinfer_lab.residency.paged_cache import PagedCache, cache_pages
from xinfer_lab.residency.paged_experts import PagedExperts
from xinfer_lab.residency.weights import CheckpointWeights

__all__ = ["PAGE_CASES", "InFlight", "everything", "filled", "small"]

LAYERS, TABLE_PAGE = 4, 512


def small(device: Device, frames: int = 2, pages: int = 8, **options: object) -> HybridMemoryPool:
    """A pool of pages of `PAGE` bytes."""
    return HybridMemoryPool(device, frames=frames, pages=pages, page_bytes=PAGE, **options)  # type: ignore[arg-type]


def filled(pool: HybridMemoryPool, count: int, size: int = PAGE) -> list[Extent]:
    """Extents ``p1``, ``p2``, ... that hold their own number in every byte."""
    extents = [pool.create(size, f"p{number}") for number in range(1, count + 1)]
    for number, extent in enumerate(extents, 1):
        pool.fill(extent, bytes([number]) * size)
    return extents


# Pools


def everything(device: Device) -> None:
    """A program in which each wait of the pool has something to order."""
    pool, witness = small(device), Witness(device)
    one, two, three = filled(pool, 3)
    for round_ in range(2):
        for number, extent in enumerate((one, two, three), 1):
            pool.acquire(extent, write=number != 2)
            if number != 2:
                witness.stamp(pool, extent, number + 10 * round_)
            else:
                witness.peek(pool, extent, bytes([2]) * PAGE)
            pool.release(extent)
    pool.evict(one)
    pool.evict(two)
    pool.evict(three)
    pool.prefetch(two, three)
    pool.evict(two)
    new = pool.create(PAGE, "new")
    pool.acquire(new, write=True)
    witness.stamp(pool, new, 50)
    pool.release(new)
    pool.write_back(new)
    pool.acquire(new, write=True)
    witness.stamp(pool, new, 51)
    pool.release(new)
    pool.evict(new)
    pool.prefetch(one)
    pool.evict(one)
    pool.fill(one, bytes([60]) * PAGE)
    pool.evict(three)
    pool.acquire(two, three)
    pool.release(two, three)
    pool.read(new)
    pool.acquire(new, write=True)
    witness.stamp(pool, new, 52)
    pool.release(new)
    pool.evict(new)
    pool.fill(new, bytes(PAGE))
    pool.close()
    homes_are_inherited(device, witness)


def homes_are_inherited(device: Device, witness: Witness) -> None:
    """An extent is destroyed while its copy is on the way; another one takes its home, and goes home from elsewhere."""
    pool = small(device, pages=2, name="second")
    old, other = filled(pool, 2)
    pool.prefetch(old)
    pool.destroy(old)
    pool.prefetch(other)
    heir = pool.create(PAGE, "heir")
    assert (heir.first, pool.table.page_in(1)) == (0, other.first)
    pool.acquire(heir, write=True)
    witness.stamp(pool, heir, 53)
    pool.release(heir)
    pool.write_back(heir)
    pool.read(heir)
    pool.close()


def faulty(device: Device) -> None:
    """Copies go out and their signals fail, once each way: the tickets that were promised are given out later."""
    assert isinstance(device, FaultyDevice)
    pool, witness = small(device, name="third"), Witness(device)
    one, two = filled(pool, 2)
    device.countdown = 1  # the copy
    with contextlib.suppress(Fault):
        pool.prefetch(one)
    device.countdown = None
    pool.acquire(one, write=True)
    witness.stamp(pool, one, 7)
    pool.release(one)
    device.countdown = 3  # two waits and the copy
    with contextlib.suppress(Fault):
        pool.write_back(one)
    device.countdown = None
    pool.read(one)
    pool.prefetch(two)
    pool.close()


def of_pool(program: Callable[[Device], None]) -> Callable[[Models, str], EmulatedDevice]:
    def case(models: Models, schedule: str) -> EmulatedDevice:
        device = FaultyDevice(kernels=kernels(), schedule=schedule)
        program(device)
        return device

    case.__name__ = program.__name__
    return case


# Models


def passes(model: QwenModel) -> None:
    """Two passes, a new sequence, and a third one, with more announced: copies are in flight at the end."""
    model.begin(4)
    for _ in range(2):
        model.forward(PROMPT)
    model.reset()
    model.forward(PROMPT)


def layer_by_hand(model: QwenModel) -> None:
    """A layer whose end the host does not wait for before parts of the model are closed one by one."""
    model.forward(PROMPT)
    model.source.begin(1)
    hidden = model._state.begin((1, 1, model.config.hidden_size))
    weights, kv = model.source.ensure(0), model.cache.ensure(0, 5, 1)
    if model.mixture is not None:
        model.mixture.run(0, 5, hidden, kv, weights)
        if not getattr(model.mixture.experts, "_owns_pool", False):
            model.mixture.experts.close()
            nothing_in_flight(model.device)
        model.mixture.close()
    else:
        from xinfer_lab.qwen2.layers import layer_spec

        with model.device.direct_queue.record() as commands:
            params = layer_params(layer_spec(model.config, 0), 5)
            commands.dispatch("decoder_layer", params=params, hidden=hidden, kv=kv, **weights.views)
    model.source.release(0)
    model.cache.release(0, 5, 1)
    if isinstance(model.cache, PagedCache):
        # One in one piece is for whoever has waited.
        model.cache.close()


def of_model(kind: str, program: Callable[[QwenModel], None]) -> Callable[[Models, str], EmulatedDevice]:
    """``program`` on a model whose ``kind`` of things lie in a pool that outlives it; then that pool is closed too."""

    def case(models: Models, schedule: str) -> EmulatedDevice:
        device = EmulatedDevice(schedule=schedule, on_hazard="raise")
        experts = 6 if "experts" in kind else 0
        with Checkpoint.open(models.path(tiny(LAYERS, experts=experts))) as checkpoint:
            pool = _open(kind, checkpoint, device)
            model = _model(kind, checkpoint, device, pool)
            program(model)
            model.close()
            nothing_in_flight(device)
            pool.close()
        return device

    case.__name__ = f"{kind}, {program.__name__}"
    return case


def _open(kind: str, checkpoint: Checkpoint, device: Device) -> HybridMemoryPool:
    config = checkpoint.config
    if kind in ("layers", "cache"):
        each = layer_pages(layer_layout(config), TABLE_PAGE)
        cache = cache_pages(cache_shape(config, 1, 64), TABLE_PAGE)
        frames, pages = 2 * each if kind == "layers" else 3, each * LAYERS + cache
    else:
        assert config.experts is not None
        each = -(-expert_layout(config).nbytes // TABLE_PAGE)
        frames, pages = 3 * each, each * len(expert_layers(config)) * config.experts.num_experts
    return HybridMemoryPool(device, frames=frames, pages=pages, page_bytes=TABLE_PAGE, policy="lru", name="shared")


def _model(kind: str, checkpoint: Checkpoint, device: Device, pool: HybridMemoryPool) -> QwenModel:
    weights = CheckpointWeights(checkpoint)
    config = weights.config
    source, cache, experts = resident_layers(), contiguous_cache, resident_experts
    if kind == "layers":
        source = lambda d, w: PagedLayers(pool, layer_layout(config), config.dtype, LAYERS, owns_pool=False)  # noqa: E731
    elif kind == "cache":
        cache = lambda d, s: PagedCache(d, s, pool, owns_pool=False)  # noqa: E731
    elif kind.startswith("experts"):
        own = kind != "experts"
        experts = lambda d, w: PagedExperts(pool, config, wants_guesses=True, owns_pool=own)  # noqa: E731
    return QwenModel(weights, device, source, context=64, make_cache=cache, make_experts=experts)


class InFlight(AssertionError):
    """Something is still in flight that should not be."""


def nothing_in_flight(device: Device) -> None:
    """Raise `InFlight` unless the host has waited for every command of every queue."""
    probe = device.create_upload_heap(256, device.fresh_name("probe"))
    stream, order = device.stream, Ordering(device.stream)
    left = [r for i, r in enumerate(stream) if hasattr(r, "call") and not order.before(i, len(stream) - 1)]
    probe.free()
    if left:
        raise InFlight(f"{left[0].op} {getattr(left[0], 'label', '')} on {left[0].queue} is in flight")


KINDS = ("layers", "cache", "experts", "experts in a pool of their own", "resident experts")
PAGE_CASES = (
    of_pool(everything),
    of_pool(faulty),
    *(of_model(kind, program) for kind in KINDS for program in (passes, layer_by_hand)),
)
"""Each runs with (models, schedule) and returns its device; a `DeviceError` or `InFlight` ends it."""
