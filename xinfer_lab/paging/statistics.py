"""What a pool has done so far and holds now, as a frozen snapshot."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PoolStatistics"]


@dataclass(frozen=True, slots=True)
class PoolStatistics:
    """Counts are extents, since the pool was made; bytes are bytes over the link.

    Of the acquisitions, ``hits`` found their pages there, ``late`` on their way (fetched ahead), ``misses`` had to
    fetch them, and ``fresh`` were pages that had no contents yet. ``prefetches`` were begun ahead of their use,
    ``declined`` found no room. ``evictions`` gave frames up, ``write_backs`` copied dirty pages home. The last four are
    frames as they are now.
    """

    hits: int = 0
    late: int = 0
    misses: int = 0
    fresh: int = 0
    prefetches: int = 0
    declined: int = 0
    evictions: int = 0
    write_backs: int = 0
    bytes_to_device: int = 0
    bytes_to_host: int = 0
    frames: int = 0
    free_frames: int = 0
    pinned_frames: int = 0
    dirty_frames: int = 0

    @property
    def acquisitions(self) -> int:
        """How often pages were acquired."""
        return self.hits + self.late + self.misses + self.fresh

    @property
    def hit_rate(self) -> float:
        """The share of acquisitions of pages with contents that found them there; 0 if there were none."""
        asked = self.acquisitions - self.fresh
        return self.hits / asked if asked else 0.0
