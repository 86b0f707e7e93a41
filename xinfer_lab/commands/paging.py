"""What the options about page pools ask for: layers, the KV cache, or both, in pages of device memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from xinfer_lab.commands.faults import CommandError
from xinfer_lab.commands.sizes import parse_size
from xinfer_lab.device.errors import OutOfDeviceMemory, format_bytes
from xinfer_lab.paging.extent import PAGE_BYTES
from xinfer_lab.residency.cache import CacheFactory, contiguous_cache
from xinfer_lab.residency.factories import Progress, SourceFactory, paged_layers

__all__ = ["NO_PAGING", "Paging", "paging_of"]


@dataclass(frozen=True, slots=True)
class Paging:
    """Bytes of device memory for a pool of ``layers`` and for one of the ``cache`` (None: not in pages)."""

    layers: int | None = None
    cache: int | None = None
    page_bytes: int = PAGE_BYTES
    policy: str = "belady"

    @property
    def name(self) -> str:
        """What the layers' pool is called in a table."""
        return f"paged, {format_bytes(self.layers or 0)}, {self.policy}"

    def source(self, on_layer: Progress | None) -> SourceFactory:
        """The layers' pool."""
        assert self.layers is not None
        return paged_layers(self.layers, self.policy, self.page_bytes, on_layer)

    def make_cache(self) -> CacheFactory:
        """The cache, in pages where they are asked for. Raises `RequestError` for too few of them."""
        if self.cache is None:
            return contiguous_cache
        from xinfer_lab.residency.paged_cache import paged_cache

        return paged_cache(self.cache, self.policy, self.page_bytes)

    @contextmanager
    def explained(self, memory: int | None) -> Iterator[None]:
        """Within it, a device that ran out of its budget of ``memory`` bytes raises `CommandError` with what to do."""
        try:
            yield
        except OutOfDeviceMemory as error:
            if memory is None:
                raise
            said = str(error).partition(" Free something")[0]
            raise CommandError(
                f"{said} Pages are taken out of --vram: choose a smaller --paged or --paged-cache, or a larger --vram"
            ) from None


NO_PAGING = Paging()
"""Nothing is in pages."""


def paging_of(
    paged: str | None, cache: str | None, page: str | None, policy: str | None, *, pool: int | None, planned: bool
) -> Paging:
    """What the options come to. ``pool``: slots that were asked for; ``planned``: the layers follow from a budget.

    Raises `CommandError` for options that exclude or miss one another.
    """
    if paged is None and cache is None and (page is not None or policy is not None):
        raise CommandError("--page and --policy are about pages: give --paged SIZE or --paged-cache SIZE with them")
    if paged is not None and pool is not None:
        raise CommandError("--paged and --stream-layers exclude each other; give one of them")
    if cache is not None and planned and paged is None and pool is None:
        raise CommandError(
            "a plan for --vram counts the whole cache: give --paged or --stream-layers with --paged-cache"
        )
    page_bytes = PAGE_BYTES if page is None else parse_size(page)
    if page_bytes % 256:
        raise CommandError(f"--page is a multiple of 256 bytes, such as 2MiB, not {page}")
    return Paging(
        layers=None if paged is None else parse_size(paged),
        cache=None if cache is None else parse_size(cache),
        page_bytes=page_bytes,
        policy=policy or "belady",
    )
