"""The sizes of a page pool, and which page or frame a span of its memory is."""

from __future__ import annotations

from dataclasses import dataclass

from xinfer_lab.device.records import Span

__all__ = ["PageShape"]


@dataclass(frozen=True, slots=True)
class PageShape:
    """A pool of ``frames`` frames in the buffer ``pool``, and the homes of ``pages`` pages in the heap ``pool.home``,
    each of ``page_bytes`` bytes."""

    frames: int
    pages: int
    page_bytes: int
    pool: str = "pool"

    @property
    def home(self) -> str:
        """The heap's name."""
        return f"{self.pool}.home"

    def frame_at(self, span: Span) -> int | None:
        """The frame that ``span`` lies in, whole or in part; None if it lies elsewhere."""
        return span.offset // self.page_bytes if span.buffer == self.pool else None

    def page_at(self, span: Span) -> int | None:
        """The page whose home ``span`` lies in, whole or in part; None if it lies elsewhere."""
        return span.offset // self.page_bytes if span.buffer == self.home else None

    def is_whole(self, span: Span) -> bool:
        """Whether ``span`` is exactly a frame, or a page's home."""
        whole = span.size == self.page_bytes and span.offset % self.page_bytes == 0
        return whole and span.buffer in (self.pool, self.home)
