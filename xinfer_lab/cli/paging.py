"""The options about page pools: layers, the KV cache or experts in pages of device memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from xinfer_lab.cli.faults import CommandError
from xinfer_lab.cli.sizes import parse_size
from xinfer_lab.device.errors import OutOfDeviceMemory, format_bytes
from xinfer_lab.device.stream_rules import BUFFER_ALIGNMENT
from xinfer_lab.paging.extent import PAGE_BYTES
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.residency.cache import CacheFactory, contiguous_cache
from xinfer_lab.residency.experts import ExpertsFactory, resident_experts
from xinfer_lab.residency.factories import Progress, SourceFactory, paged_layers

__all__ = ["NO_PAGING", "Paging", "page_bytes_of", "paging_of"]


@dataclass(frozen=True, slots=True)
class Paging:
    """Bytes of device memory for a pool of ``layers``, of the ``cache`` and of ``experts`` (None: not in pages).

    ``policy`` None: belady where the order of use is known, lru for experts, of which it is not.
    """

    layers: int | None = None
    cache: int | None = None
    experts: int | None = None
    page_bytes: int = PAGE_BYTES
    policy: str | None = None

    @property
    def name(self) -> str:
        """The layers in pages and by which policy, for a table."""
        return f"paged, {format_bytes(self.layers or 0)}, {self.policy or 'belady'}"

    @property
    def name_of_experts(self) -> str:
        """The experts in pages and by which policy, for a table; "resident" where they are not."""
        if self.experts is None:
            return "resident"
        return f"paged experts, {format_bytes(self.experts)}, {self.policy or 'lru'}"

    def check(self, checkpoint: Checkpoint) -> None:
        """Raise `CommandError` if experts are asked for in pages, and ``checkpoint`` has none."""
        if self.experts is not None and checkpoint.config.experts is None:
            raise CommandError(f"{checkpoint.path} has no experts to put into pages; its layers can be: --paged SIZE")

    def source(self, on_layer: Progress | None) -> SourceFactory:
        """The layers' pool."""
        assert self.layers is not None
        return paged_layers(self.layers, self.policy or "belady", self.page_bytes, on_layer)

    def make_cache(self) -> CacheFactory:
        """The cache, in pages where they are asked for. Raises `RequestError` for too few of them."""
        if self.cache is None:
            return contiguous_cache
        from xinfer_lab.residency.paged_cache import paged_cache

        return paged_cache(self.cache, self.policy or "belady", self.page_bytes)

    def make_experts(self) -> ExpertsFactory:
        """The experts, in pages where they are asked for. Raises `RequestError` for a policy that they cannot have."""
        if self.experts is None:
            return resident_experts
        from xinfer_lab.residency.paged_experts import paged_experts

        return paged_experts(self.experts, self.policy or "lru", self.page_bytes)

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
                f"{said} Pages are taken out of --vram: choose smaller pools, or a larger --vram"
            ) from None


NO_PAGING = Paging()
"""Nothing is in pages."""


def paging_of(
    paged: str | None,
    cache: str | None,
    page: str | None,
    policy: str | None,
    *,
    pool: int | None = None,
    experts: str | None = None,
    offered: str = "--paged SIZE or --paged-cache",
) -> Paging:
    """What the options come to. ``pool``: slots that were asked for; ``offered``: the options that ask for pages.

    Raises `CommandError` for options that exclude or miss one another.
    """
    if paged is None and cache is None and experts is None and (page is not None or policy is not None):
        raise CommandError(f"--page and --policy are about pages: give {offered} SIZE with them")
    if paged is not None and pool is not None:
        raise CommandError("--paged and --stream-layers exclude each other; give one of them")
    return Paging(
        layers=None if paged is None else parse_size(paged),
        cache=None if cache is None else parse_size(cache),
        experts=None if experts is None else parse_size(experts),
        page_bytes=page_bytes_of(page),
        policy=policy,
    )


def page_bytes_of(text: str | None) -> int:
    """The size of a page that ``--page`` gives. Raises `CommandError` for what is none."""
    page_bytes = PAGE_BYTES if text is None else parse_size(text)
    if page_bytes % BUFFER_ALIGNMENT:
        raise CommandError(f"--page is a multiple of {BUFFER_ALIGNMENT} bytes, such as 2MiB, not {text}")
    return page_bytes
