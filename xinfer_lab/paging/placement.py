"""`Placement` decides which frames extents get, and which extents leave for them.

Apart from the pool, since it only decides: it submits nothing, and can be tested with a table and no device.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from xinfer_lab.paging.errors import PoolFull
from xinfer_lab.paging.extent import PageState
from xinfer_lab.paging.policy import EvictionPolicy
from xinfer_lab.paging.table import PageEntry, PageTable

__all__ = ["MOST_AT_ONCE", "Placement", "batches"]


MOST_AT_ONCE = 64
"""Extents that are given frames together, and moved by one copy, at most: the link works already while the host finds
room for the next ones."""


def batches(entries: Iterable[PageEntry]) -> Iterator[list[PageEntry]]:
    """``entries`` in their order: single pages in a row, which are given frames together; larger ones each alone."""
    for single, some in itertools.groupby(entries, key=lambda entry: entry.extent.pages == 1):
        if single:
            yield list(some)
        else:
            yield from ([entry] for entry in some)


class Placement:
    """Makes room in the frames of ``table``: ``policy`` says which leave, ``evict`` lets them go.

    What is acquired stays, and the extents whose first pages are in ``keep``: those that the same call asked for. What
    is fetched ``ahead`` of its use also leaves alone what is on its way.
    """

    def __init__(
        self, table: PageTable, policy: EvictionPolicy, evict: Callable[[Sequence[PageEntry]], object]
    ) -> None:
        self._table, self._policy, self._evict = table, policy, evict

    def make_room(self, batch: Sequence[PageEntry], keep: Collection[int], *, ahead: bool) -> Sequence[int]:
        """The first frame of each of ``batch`` (see `batches`), all free now. Fewer where there is no room for more
        ahead of time. Raises `PoolFull` where there is none now; then none was evicted.
        """
        if batch[0].extent.pages > 1:
            frame = self._make_gap(batch[0], keep, ahead)
            return () if frame is None else (frame,)
        leaving, room = dict[int, PageEntry](), self._table.free
        while room < len(batch):
            victim = self._choose(leaving, batch[room], keep, ahead)
            if victim is None and not ahead:
                raise self._full(batch[room], keep)
            if victim is None:
                break
            leaving[victim.extent.first] = victim
            room += victim.extent.pages
        self._evict(list(leaving.values()))
        return self._table.places(min(room, len(batch)))

    def _make_gap(self, entry: PageEntry, keep: Collection[int], ahead: bool) -> int | None:
        """The first of as many neighbouring free frames as ``entry`` takes."""
        pages, leaving = entry.extent.pages, dict[int, PageEntry]()
        frame = self._table.gap(pages)
        while frame is None:
            victim = self._choose(leaving, entry, keep, ahead)
            if victim is None and not ahead:
                raise self._full(entry, keep)
            if victim is None:
                return None
            leaving[victim.extent.first] = victim
            frame = self._table.gap_around(victim, pages, leaving)
        owners = (self._table.owner(number) for number in range(frame, frame + pages))
        self._evict(list({owner.extent.first: owner for owner in owners if owner is not None}.values()))
        return frame

    def _choose(
        self, leaving: Collection[int], incoming: PageEntry, keep: Collection[int], ahead: bool
    ) -> PageEntry | None:
        """The policy's next victim for ``incoming``, beside those that are ``leaving``."""

        def may_go(page: int) -> bool:
            if page in leaving or page in keep:
                return False
            entry = self._table.by_key(page)
            return not (entry.pins or (ahead and entry.state is PageState.MIGRATING))

        victim = self._policy.choose(may_go, incoming.extent.first if ahead else None)
        return None if victim is None else self._table.by_key(victim)

    def _full(self, entry: PageEntry, keep: Collection[int]) -> PoolFull:
        held = [other for other in self._table if other.pins]
        names = ", ".join(repr(other.extent.name) for other in held[:6]) + (" and more" if len(held) > 6 else "")
        others = sum(not self._table.by_key(page).pins for page in keep) - 1
        asked = f"; {others} more were asked for in this call" if others > 0 else ""
        return PoolFull(
            f"{entry.extent.name!r} needs {entry.extent.pages} neighbouring frames of {self._table.frames}, of which "
            f"{sum(other.extent.pages for other in held)} are acquired ({names}) and cannot be evicted{asked}: release "
            f"what is no longer used, or give the pool more frames"
        )
