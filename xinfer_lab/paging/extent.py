"""What a pool moves: an extent, which is one page or several neighbouring ones, and its states.

Extents rather than single pages: a tensor must lie in one piece for a kernel, and one large copy costs the host as much
as a small one.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["PAGE_BYTES", "Extent", "PageState"]

PAGE_BYTES = 2 * 2**20
"""The usual size of a page: 2 MiB. A copy of that size still runs near the link's rate; a smaller one does not."""


class PageState(enum.Enum):
    """Where the valid bytes of a page are."""

    IN_HOST = "IN_HOST"
    MIGRATING = "MIGRATING"
    """A copy was submitted, to the device or back, and nobody who may use the bytes has been told to wait for it."""
    IN_DEVICE = "IN_DEVICE"


@dataclass(frozen=True, slots=True)
class Extent:
    """``pages`` neighbouring pages from logical page ``first`` on, which lie side by side on the device too.

    ``nbytes``: how many of their bytes are used, from the start. Most extents are a single page; a tensor that is
    larger needs several, moved and evicted together.
    """

    name: str
    first: int
    pages: int
    nbytes: int

    @property
    def numbers(self) -> range:
        """The logical page numbers."""
        return range(self.first, self.first + self.pages)
