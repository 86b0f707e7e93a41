"""`PagedExperts`: experts are extents of a page pool, fetched when tokens chose them, or ahead of that on a guess."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from xinfer_lab.device.device import Device
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.records import Source, View
from xinfer_lab.paging.errors import PoolFull
from xinfer_lab.paging.extent import PAGE_BYTES, Extent, PageState
from xinfer_lab.paging.extent_pool import ExtentPool
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import expert_layout, expert_tensor_name
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.experts import ExpertsFactory, ExpertSource, ExpertWeights, expert_layers
from xinfer_lab.residency.weights import ModelWeights

__all__ = ["LEAST_EXPERTS", "ExpertStatistics", "PagedExperts", "paged_experts"]

LEAST_EXPERTS = 2
"""Experts that a pool has room for at least: one is computed while the next one arrives."""

_Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ExpertStatistics:
    """Of the experts that layers chose: how many were ``there`` from earlier use, how many were fetched ``ahead`` on a
    guess and wait for their first use, and how many were ``missing``, so that their copies began only then."""

    there: int = 0
    ahead: int = 0
    missing: int = 0

    @property
    def hit_rate(self) -> float:
        """The share of those whose copies need not begin first; 0 if there were none."""
        asked = self.there + self.ahead + self.missing
        return (self.there + self.ahead) / asked if asked else 0.0


class PagedExperts:
    """All experts of a model in ``pool``, each an extent of its own; its frames hold those that are used.

    Experts that a layer chose are fetched together, in the order of their use, as far as there is room, and those that
    are there already stay until then. With ``wants_guesses`` the experts that the next layer will probably choose are
    fetched too, once the last of this layer was submitted. Filling the pool blocks the host; ``owns_pool`` says whether
    `close` closes it.
    """

    def __init__(
        self, pool: ExtentPool, config: Qwen2Config, *, wants_guesses: bool = False, owns_pool: bool = True
    ) -> None:
        assert config.experts is not None
        self.pool, self.wants_guesses, self._owns_pool = pool, wants_guesses, owns_pool
        self._layout, self._dtype = expert_layout(config), config.dtype
        self._extents: dict[_Key, Extent] = {}
        self._coming: list[_Key] = []
        self._held: set[_Key] = set()
        self._found: Counter[str] = Counter()
        # By their first one: there are as many as places in the pool where an expert can begin.
        self._views: dict[View, ExpertWeights] = {}
        for layer in expert_layers(config):
            for expert in range(config.experts.num_experts):
                self._extents[layer, expert] = self._load(layer, expert)

    def _load(self, layer: int, expert: int) -> Extent:
        extent = self.pool.create(self._layout.nbytes, f"expert {layer},{expert}")
        for place in self._layout.tensors:
            source = Source(expert_tensor_name(layer, expert, place.name), 0, place.nbytes)
            self.pool.fill(extent, source, place.offset)
        return extent

    @property
    def uploads(self) -> int:
        """Experts copied to the device so far."""
        return self.pool.statistics().bytes_to_device // self._layout.nbytes

    def statistics(self) -> ExpertStatistics:
        """How the experts that were chosen so far were found. What was moved: `HybridMemoryPool.statistics`."""
        return ExpertStatistics(**self._found)

    def expect(self, layer: int, experts: Sequence[int], *, certain: bool) -> None:
        """Fetch what is not there; what is certain takes the place of all that was expected before."""
        keys = [(layer, expert) for expert in experts]
        if certain:
            self._let_go()
            self._coming = keys
            self._found.update(map(self._state, keys))
            self._hold(keys)
        self._fetch(keys)

    def _state(self, key: _Key) -> str:
        extent = self._extents[key]
        if not self.pool.holds(extent):
            return "missing"
        return "there" if self.pool.state(extent) is PageState.IN_DEVICE else "ahead"

    def _hold(self, keys: list[_Key]) -> None:
        # What is there must not leave for what is fetched before its use; two more have to find room all the same.
        room = self.pool.table.frames // self._extents[keys[0]].pages - LEAST_EXPERTS
        for key in keys:
            if len(self._held) < room and self.pool.state(self._extents[key]) is PageState.IN_DEVICE:
                self.pool.acquire(self._extents[key])
                self._held.add(key)

    def _let_go(self) -> None:
        for key in self._held:
            self.pool.release(self._extents[key])
        self._held.clear()

    def _fetch(self, keys: list[_Key]) -> None:
        # One by one: what is fetched in one call is there together, and the first of them would wait for the last.
        for key in keys:
            extent = self._extents[key]
            if not self.pool.holds(extent) and not self.pool.prefetch(extent):
                break

    def ensure(self, layer: int, expert: int) -> ExpertWeights:
        """Fetch the expert if it is not there, let the direct queue wait for it, and fetch what comes after it."""
        key = layer, expert
        extent = self._extents[key]
        if key in self._held:
            self._held.remove(key)
        else:
            self.pool.acquire(extent)
        if key in self._coming:
            del self._coming[: self._coming.index(key) + 1]
            self._fetch(self._coming)
        return self._weights(extent)

    def ensure_together(self, layer: int, experts: Sequence[int]) -> Sequence[ExpertWeights] | None:
        """Fetch what is not there of them, and let the direct queue wait once for all. None where the pool has no room
        for them and one more, or is shared with others."""
        keys = [(layer, expert) for expert in experts]
        extents = [self._extents[key] for key in keys]
        # Of a pool that others use too, nobody knows how much is free at a time.
        if not self._owns_pool or self.pool.table.frames // extents[0].pages <= len(keys):
            return None
        held = self._held.intersection(keys)
        try:
            self.pool.acquire(*(self._extents[key] for key in keys if key not in held))
        except PoolFull:
            return None
        self._held -= held
        self._coming = []
        return [self._weights(extent) for extent in extents]

    def _weights(self, extent: Extent) -> ExpertWeights:
        places = self._layout.tensors
        first = self.pool.view(extent, self._dtype, places[0].shape, places[0].offset)
        if (views := self._views.get(first)) is None:
            views = {place.name: self.pool.view(extent, self._dtype, place.shape, place.offset) for place in places}
            self._views[first] = views
        return views

    def release(self, layer: int, expert: int) -> None:
        """The expert may be evicted, behind its last read."""
        self.pool.release(self._extents[layer, expert])

    def release_together(self, layer: int, experts: Sequence[int]) -> None:
        """They may be evicted, behind their last read."""
        self.pool.release(*(self._extents[layer, expert] for expert in experts))

    def close(self) -> None:
        """Block the host until nothing is in flight; give all memory back. May be called again."""
        if self._owns_pool:
            self.pool.close()
            return
        self._let_go()
        self.pool.device.wait_idle()
        for extent in self._extents.values():
            self.pool.destroy(extent)
        self._extents = {}


def paged_experts(
    size: int, policy: str = "lru", page_bytes: int = PAGE_BYTES, *, guess: bool = False
) -> ExpertsFactory:
    """Experts in a page pool of ``size`` bytes of device memory, beside a pinned copy of all of them.

    ``guess``: fetch what the next layer will probably choose. Raises `RequestError` where two experts do not fit, and
    for the policy "belady": which experts are used next is not known.
    """
    if policy == "belady":
        raise RequestError("belady needs to know which experts are used next, and nobody does: choose lru or clock")

    def make(device: Device, weights: ModelWeights) -> ExpertSource:
        # Imported when it is needed: with a pool of another kind this one need not be there.
        from xinfer_lab.paging.pool import HybridMemoryPool

        config = weights.config
        assert config.experts is not None
        nbytes = expert_layout(config).nbytes
        each = -(-nbytes // page_bytes)
        pages, frames = each * len(expert_layers(config)) * config.experts.num_experts, size // page_bytes
        if frames < LEAST_EXPERTS * each:
            raise RequestError(
                f"a pool of {format_bytes(size)} holds {frames} of the pages of {format_bytes(page_bytes)}, and "
                f"{LEAST_EXPERTS} experts of {format_bytes(nbytes)} take {LEAST_EXPERTS * each}: choose "
                f"{format_bytes(LEAST_EXPERTS * each * page_bytes)} or more"
            )
        pool = HybridMemoryPool(
            device, frames=min(frames, pages), pages=pages, page_bytes=page_bytes, policy=policy,
            name=device.fresh_name("experts.pool"),
        )  # fmt: skip
        return PagedExperts(pool, config, wants_guesses=guess)

    return make
