"""`PagedLayers`: layers are extents of a page pool, fetched on demand or one ahead, under an eviction policy."""

from __future__ import annotations

from collections.abc import Callable

import torch

from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.records import Source
from xinfer_lab.paging.extent import PAGE_BYTES, Extent
from xinfer_lab.paging.policy import Foreseeing
from xinfer_lab.paging.pool import HybridMemoryPool
from xinfer_lab.qwen2.layout import LayerLayout, tensor_name
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.source import LayerOrder
from xinfer_lab.residency.weights import LayerWeights

__all__ = ["LEAST_LAYERS", "PagedLayers", "frames_for", "layer_pages"]

LEAST_LAYERS = 2
"""Layers that a pool has room for at least: one is computed while the next one arrives."""


def layer_pages(layout: LayerLayout, page_bytes: int = PAGE_BYTES) -> int:
    """Pages that a layer takes, the last of them in part."""
    return -(-layout.nbytes // page_bytes)


def frames_for(layout: LayerLayout, size: int, page_bytes: int = PAGE_BYTES) -> int:
    """The frames that ``size`` bytes of device memory come to. Raises `RequestError` if two layers do not fit."""
    frames, least = size // page_bytes, LEAST_LAYERS * layer_pages(layout, page_bytes)
    if frames < least:
        raise RequestError(
            f"a pool of {format_bytes(size)} holds {frames} of the pages of {format_bytes(page_bytes)}, and "
            f"{LEAST_LAYERS} layers of {format_bytes(layout.nbytes)} take {least}: choose "
            f"{format_bytes(least * page_bytes)} or more"
        )
    return frames


class PagedLayers:
    """``layers`` layers in ``pool``, each an extent of its own that holds its groups one after the other.

    While a layer is computed, the next ``ahead`` ones that are not there are fetched, as far as the policy gives room.
    The policy decides what stays; one that goes by the future (`Foreseeing`) is told it. The pool may hold other
    things too; ``owns_pool`` says whether `close` closes it.
    """

    def __init__(
        self,
        pool: HybridMemoryPool,
        layout: LayerLayout,
        dtype: torch.dtype,
        layers: int,
        *,
        ahead: int = 1,
        owns_pool: bool = True,
        on_layer: Callable[[int], None] | None = None,
    ) -> None:
        if ahead < 0:
            raise ValueError(f"layers are fetched 0 or more ahead, not {ahead}")
        self.pool = pool
        self._layout, self._dtype, self._ahead, self._owns_pool = layout, dtype, ahead, owns_pool
        self._order = LayerOrder(layers)
        self._extents: list[Extent] = []
        self._uploads = 0
        for layer in range(layers):
            self._extents.append(self._load(layer))
            if on_layer is not None:
                on_layer(layer)
        self._expect(range(layers))

    def _load(self, layer: int) -> Extent:
        extent, start = self.pool.create(self._layout.nbytes, f"layer {layer}"), 0
        for group in self._layout.groups:
            for place in group.tensors:
                source = Source(tensor_name(layer, place.name), 0, place.nbytes)
                self.pool.fill(extent, source, start + place.offset)
            start += group.nbytes
        return extent

    @property
    def uploads(self) -> int:
        """Layers copied to the device so far."""
        return self._uploads

    def begin(self, steps: int) -> None:
        """Announce ``steps`` passes; the first layers may go out."""
        self._order.begin(steps)
        self._prefetch(self._order.step)

    def ensure(self, layer: int) -> LayerWeights:
        """Fetch the layer if it is not there, let the direct queue wait for it, and fetch ahead."""
        step = self._order.ensure(layer)
        extent = self._extents[layer]
        missing = not self.pool.holds(extent)
        self.pool.acquire(extent)
        self._uploads += missing
        self._expect([step + len(self._extents)])
        self._prefetch(step + 1)
        views, start = {}, 0
        for group in self._layout.groups:
            for place in group.tensors:
                views[place.name] = self.pool.view(extent, self._dtype, place.shape, start + place.offset)
            start += group.nbytes
        return LayerWeights(layer, (self.pool.buffer,), views)

    def release(self, layer: int) -> None:
        """The layer may be evicted, behind its last read."""
        self._order.release(layer)
        self.pool.release(self._extents[layer])

    def _prefetch(self, first: int) -> None:
        for step in range(first, min(first + self._ahead, self._order.end)):
            extent = self._extents[step % len(self._extents)]
            if not self.pool.holds(extent) and self.pool.prefetch(extent):
                self._uploads += 1

    def _expect(self, steps: range | list[int]) -> None:
        # Passes follow one another: a layer's next use is as many steps away as there are layers.
        if isinstance(policy := self.pool.policy, Foreseeing):
            for step in steps:
                policy.expect(self._extents[step % len(self._extents)].first, step)

    def close(self) -> None:
        """Block the host until nothing is in flight; give all memory back. May be called again."""
        if self._owns_pool:
            self.pool.close()
            return
        self.pool.device.wait_idle()
        for extent in self._extents:
            self.pool.destroy(extent)
        self._extents = []
