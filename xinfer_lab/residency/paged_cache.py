"""`PagedCache`: keys and values in pages that go to host memory and come back; each layer's are gathered for use."""

from __future__ import annotations

from collections.abc import Sequence

from xinfer_lab.device.device import Device
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.records import View
from xinfer_lab.paging.extent import PAGE_BYTES, Extent
from xinfer_lab.paging.extent_pool import ExtentPool
from xinfer_lab.paging.policy import Foreseeing
from xinfer_lab.residency.cache import CacheFactory, CacheShape, KVCache, cache_over_cards
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.kv_kernels import MOST_PAGES, move_params

__all__ = ["PagedCache", "cache_pages", "paged_cache", "tokens_a_page"]

LEAST_FRAMES = 2
"""Frames that a cache needs at least: one is read while the next one arrives."""


def tokens_a_page(shape: CacheShape, page_bytes: int = PAGE_BYTES) -> int:
    """Tokens whose keys and values of one layer fit into a page. Raises `RequestError` if not even one does."""
    tokens = page_bytes // (2 * shape.token_bytes)
    if tokens < 1:
        raise RequestError(
            f"a page of {format_bytes(page_bytes)} holds no token of this cache, whose keys and values take "
            f"{format_bytes(2 * shape.token_bytes)} a layer: choose larger pages"
        )
    return min(tokens, shape.context)


def cache_pages(shape: CacheShape, page_bytes: int = PAGE_BYTES) -> int:
    """Pages that the whole context takes, in all layers."""
    return shape.layers * -(-shape.context // tokens_a_page(shape, page_bytes))


class PagedCache:
    """For each layer a block table: block b holds tokens b * P to (b + 1) * P, keys and then values, in one page of
    ``pool``. One buffer has room for the whole context of one layer.

    Before a layer is computed, its pages are fetched as far as they are not there, and gathered into that buffer, so
    that the layer reads what it would read of a contiguous cache, byte for byte. Its new tokens are put into their
    pages afterwards; these are dirty then and go home before their frames are used again, full ones at once. A layer
    with a window reads only the pages that its queries see. Pages are fetched ahead across layers, as far as the policy
    gives room.
    """

    def __init__(self, device: Device, shape: CacheShape, pool: ExtentPool, *, owns_pool: bool = True) -> None:
        self.device, self.shape, self.pool = device, shape, pool
        self.block_tokens = tokens_a_page(shape, pool.page_bytes)
        self.block_tables: list[list[Extent]] = [[] for _ in range(shape.layers)]
        self._owns_pool = owns_pool
        self._buffer = device.create_buffer(shape.layer_bytes, device.fresh_name("kv.gathered"))
        self._view = self._buffer.view(shape.dtype, shape.tokens(shape.context))
        frames = pool.table.frames
        self._group = max(1, min(MOST_PAGES, frames // 4))
        self._ahead = max(1, min(MOST_PAGES, frames // 2))
        self._spills = frames < cache_pages(shape, pool.page_bytes)
        self._steps = 0
        self._closed = False

    def ensure(self, layer: int, position: int, tokens: int) -> View:
        """Gather what the layer's queries see of the tokens before ``position``."""
        start = self._first_block(layer, position)
        blocks = self._seen(layer, position)
        coming = [*blocks, *self._next_blocks(layer, position)]
        for place in range(0, len(blocks), self._group):
            group = blocks[place : place + self._group]
            self.pool.acquire(*group)
            self._expect(group)
            self._prefetch(coming, place + len(group))
            first = (start + place) * self.block_tokens
            end = min(position, first + len(group) * self.block_tokens)
            self._dispatch("gather_pages", layer, group, first, first, end - first)
            self.pool.release(*group)
        return self._view

    def release(self, layer: int, position: int, tokens: int) -> None:
        """Put the new tokens into their pages."""
        table, size = self.block_tables[layer], self.block_tokens
        for number in range(len(table), -(-(position + tokens) // size)):
            table.append(self.pool.create(2 * size * self.shape.token_bytes, f"kv[{self._number(layer)}][{number}]"))
        last = (position + tokens - 1) // size
        for number in range(position // size, last + 1, self._group):
            group = table[number : min(number + self._group, last + 1)]
            low = max(position, number * size)
            high = min(position + tokens, (number + len(group)) * size)
            self.pool.acquire(*group, write=True)
            self._expect(group)
            self._dispatch("scatter_pages", layer, group, number * size, low, high - low)
            self.pool.release(*group)
            if self._spills:
                # Full pages do not change any more: those that went home early can be evicted without a copy.
                self.pool.write_back(*group[: (position + tokens) // size - number])
        self._steps += 1

    def reset(self) -> None:
        """Forget all pages; nothing is written back."""
        for table in self.block_tables:
            for extent in table:
                self.pool.destroy(extent)
            table.clear()

    def close(self) -> None:
        """Block the host until nothing is in flight, and give the memory back."""
        if self._closed:
            return
        self._closed = True
        self.device.wait_idle()
        self.reset()
        self._buffer.free()
        if self._owns_pool:
            self.pool.close()

    def _number(self, layer: int) -> int:
        return layer if self.shape.numbers is None else self.shape.numbers[layer]

    def _first_block(self, layer: int, position: int) -> int:
        window = self.shape.windows[layer]
        return 0 if window is None else max(0, position - window + 1) // self.block_tokens

    def _seen(self, layer: int, position: int) -> list[Extent]:
        last = -(-position // self.block_tokens)
        return self.block_tables[layer][self._first_block(layer, position) : last]

    def _next_blocks(self, layer: int, position: int) -> list[Extent]:
        # The layer after this one; after the last layer the first one, which has its new tokens already.
        return self._seen((layer + 1) % self.shape.layers, position)[: self._ahead]

    def _prefetch(self, coming: Sequence[Extent], start: int) -> None:
        self.pool.prefetch(*coming[start : start + self._ahead])

    def _expect(self, extents: Sequence[Extent]) -> None:
        if isinstance(policy := self.pool.policy, Foreseeing):
            for extent in extents:
                policy.expect(extent.first, self._steps + self.shape.layers)

    def _dispatch(
        self, kernel: str, layer: int, group: Sequence[Extent], first: int, position: int, tokens: int
    ) -> None:
        shape = self.shape.tokens(self.block_tokens)
        pages = {f"page{n}": self.pool.view(extent, self.shape.dtype, shape) for n, extent in enumerate(group)}
        verb, number = kernel.partition("_")[0], self._number(layer)
        with self.device.direct_queue.record(f"{verb} kv of layer {number}") as commands:
            commands.dispatch(kernel, params=move_params(first, position, tokens), kv=self._view, **pages)  # type: ignore[arg-type]  # no page is called label or params


def paged_cache(size: int, policy: str = "belady", page_bytes: int = PAGE_BYTES) -> CacheFactory:
    """A cache in a page pool of ``size`` bytes of each card's memory, beside pinned memory for the whole context.

    Raises `RequestError` for less than two frames.
    """
    frames = size // page_bytes
    if frames < LEAST_FRAMES:
        raise RequestError(
            f"a pool of {format_bytes(size)} holds {frames} of the pages of {format_bytes(page_bytes)}, and a cache "
            f"needs {LEAST_FRAMES}: choose {format_bytes(LEAST_FRAMES * page_bytes)} or more, or smaller pages"
        )

    def share(device: Device, shape: CacheShape) -> KVCache:
        # Imported when it is needed: with a pool of another kind this one need not be there.
        from xinfer_lab.paging.pool import HybridMemoryPool

        pages = cache_pages(shape, page_bytes)
        pool = HybridMemoryPool(
            device, frames=min(frames, pages), pages=pages, page_bytes=page_bytes, policy=policy,
            name=device.fresh_name("kv.pool"),
        )  # fmt: skip
        return PagedCache(device, shape, pool)

    return lambda device, shape: cache_over_cards(device, shape, share)
