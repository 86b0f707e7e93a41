"""Models whose layers, experts or cache lie in pages: the residencies of a benchmark of pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xinfer_lab.bench.entries import Entry, budget_plan, serial_entry
from xinfer_lab.bench.measure import Workload
from xinfer_lab.bench.rows import FETCHED_AHEAD, PAGED_HITS
from xinfer_lab.bench.store import LayerStore
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import expert_layout
from xinfer_lab.residency.cache import cache_shape
from xinfer_lab.residency.experts import expert_layers
from xinfer_lab.residency.factories import paged_layers, resident_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.paged import PagedLayers
from xinfer_lab.residency.paged_cache import PagedCache, cache_pages, paged_cache
from xinfer_lab.residency.paged_experts import PagedExperts, paged_experts

__all__ = ["cache_entry", "expert_entries", "naive_entry", "paged_entries"]


def expert_entries(config: Qwen2Config, share: float, page_bytes: int) -> list[Entry]:
    """Experts in a pool that holds ``share`` of them: fetched when tokens chose them, and guessed ahead."""
    assert config.experts is not None
    each = -(-expert_layout(config).nbytes // page_bytes)
    room = int(share * config.experts.num_experts * len(expert_layers(config))) * each * page_bytes

    def entry(name: str, *, guess: bool) -> Entry:
        return Entry(
            name=f"{name}, {format_bytes(room)}",
            real=lambda _: resident_layers(),
            sized=lambda _: resident_layers(),
            arguments=lambda _: {"make_experts": paged_experts(room, "lru", page_bytes, guess=guess)},
            note=_of_experts,
            on_demand=True,
        )

    return [entry("experts on demand", guess=False), entry("experts guessed ahead", guess=True)]


def _of_experts(model: QwenModel) -> str:
    assert model.mixture is not None and isinstance(model.mixture.experts, PagedExperts)
    found, guesses = model.mixture.experts.statistics(), model.mixture.guesses
    said = (
        f"hit rate {found.hit_rate:.3f} since the first token: of the chosen experts {found.there} were there, "
        f"{found.ahead} on their way, {found.missing} missing"
    )
    if guesses.guessed:
        said += f"; {guesses.right / guesses.guessed:.3f} of the guesses were right"
    return said


def cache_entry(config: Qwen2Config, share: float, page_bytes: int) -> Entry:
    """Everything resident but the cache, of which a pool holds ``share``."""

    def arguments(workload: Workload) -> Mapping[str, Any]:
        pages = cache_pages(cache_shape(config, 1, workload.context), page_bytes)
        return {"make_cache": paged_cache(max(2, int(share * pages)) * page_bytes, "belady", page_bytes)}

    return Entry(
        name=f"paged cache, {share:.2f} of it in device memory",
        real=lambda _: resident_layers(),
        sized=lambda _: resident_layers(),
        arguments=arguments,
        note=_of_cache,
        on_demand=True,
    )


def _of_cache(model: QwenModel) -> str:
    assert isinstance(model.cache, PagedCache)
    found = model.cache.pool.statistics()
    return f"hit rate {found.hit_rate:.3f}, {found.write_backs} pages written back, since the first token"


def paged_entries(store: LayerStore, budget: int, reserved: Mapping[str, int], page_bytes: int) -> list[Entry]:
    """Layers in pages of all of ``budget`` that nothing else needs: each fetched while the one before is computed. LRU
    evicts what is needed soonest, so that every layer is moved in every pass; Belady's rule lets as many stay as can.
    """

    def room(workload: Workload) -> int:
        plan = budget_plan(store.config, workload, budget, reserved, host_embedding=False)
        return (budget - sum(plan.always.values())) // page_bytes * page_bytes

    def entry(name: str, policy: str) -> Entry:
        return Entry(
            name=name,
            real=lambda workload: paged_layers(room(workload), policy, page_bytes),
            sized=lambda workload: paged_layers(room(workload), policy, page_bytes),
            options={"memory": budget},
            note=_of_layers,
        )

    return [entry(FETCHED_AHEAD, "lru"), entry(PAGED_HITS, "belady")]


def _of_layers(model: QwenModel) -> str:
    assert isinstance(model.source, PagedLayers)
    found, layers = model.source.pool.statistics(), model.config.num_hidden_layers
    uses = found.acquisitions
    return (
        f"{(uses - model.source.uploads) / uses:.3f} of {uses} uses moved nothing; "
        f"the pool holds {found.frames * model.source.pool.page_bytes / 1e9:.2f} GB of {layers} layers"
    )


def naive_entry(store: LayerStore, budget: int, *, pin: bool) -> Entry:
    """Upload, compute, upload, compute, within the same ``budget``; without ``pin`` out of ordinary memory, the
    naive way. The store must no longer be pinned then."""
    serial = serial_entry(store)
    return Entry(
        name="serial, pinned" if pin else "serial, pageable",
        real=serial.real,
        sized=serial.sized,
        options={"memory": budget} if pin else {"memory": budget, "pin": False},
    )
