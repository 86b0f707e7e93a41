"""Random programs on a page pool: whatever is done in whatever order, and whatever fails, no page is lost, no frame has
two owners, every reader sees what was written last, and nothing is left to luck.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.pool_programs import PAGE, Fault, FaultyDevice, Witness, kernels
from xinfer_lab.device.records import Copy
from xinfer_lab.paging.errors import HostPoolFull, PageError, PoolFull
from xinfer_lab.paging.extent import Extent, PageState
from xinfer_lab.paging.policy import POLICIES
from xinfer_lab.paging.pool import HybridMemoryPool

SIZES = st.one_of(st.just(PAGE), st.just(PAGE), st.integers(1, 2 * PAGE), st.just(2 * PAGE))
"""Full pages can be neighbours that one copy moves."""
SCHEDULES = ("timed", "copies_first", "copies_last", "random(1)", "random(2)")


def faults(most: int) -> st.SearchStrategy[int | None]:
    """How many commands go through before one fails; mostly none fails."""
    return st.sampled_from((None, None, None, *range(most + 1)))


class PoolMachine(RuleBasedStateMachine):
    """The pool beside a plain dictionary of bytes."""

    @initialize(
        frames=st.integers(2, 8), pages=st.integers(6, 16), policy=st.sampled_from(POLICIES),
        schedule=st.sampled_from(SCHEDULES), sizes=st.lists(SIZES, min_size=3, max_size=10),
    )  # fmt: skip
    def open(self, frames: int, pages: int, policy: str, schedule: str, sizes: list[int]) -> None:
        self.device = FaultyDevice(kernels=kernels(), schedule=schedule)
        self.pool = HybridMemoryPool(self.device, frames=frames, pages=pages, page_bytes=PAGE, policy=policy)
        self.witness = Witness(self.device)
        self.contents: dict[Extent, bytes | None] = {}
        self.pins: dict[Extent, int] = {}
        self.writable: set[Extent] = set()
        self.value = 0
        for nbytes in sizes:
            self.create(nbytes)
        for number, extent in enumerate(list(self.contents)):
            if number % 3 == 2:
                continue
            self.contents[extent] = bytes([self.next_value()]) * extent.nbytes
            self.pool.fill(extent, self.contents[extent])

    def some(self, data: st.DataObject, wanted: Any, least: int = 1) -> list[Extent]:
        choice = [extent for extent in self.contents if wanted(extent)]
        if len(choice) < least:
            return []
        return data.draw(st.lists(st.sampled_from(choice), min_size=least, max_size=6, unique=True))

    def next_value(self) -> int:
        self.value = self.value % 250 + 1
        return self.value

    def attempt(self, fault: int | None, action: Any, *allowed: type[Exception]) -> bool:
        """Do ``action``, with a fault injected into it or not; whether it went through. What is neighbours in both
        memories came in one copy.
        """
        self.device.countdown, first = fault, len(self.device.stream)
        try:
            action()
        except (Fault, *allowed):
            return False
        finally:
            self.device.countdown = None
            copies = [r for r in self.device.stream.records[first:] if isinstance(r, Copy) and r.queue == "copy"]
            for one, next_ in itertools.pairwise(copies):
                assert (one.dst.end, one.src.end) != (next_.dst.offset, next_.src.offset), f"{one.label}, {next_.label}"
        return True

    @rule(nbytes=st.integers(1, 3 * PAGE))
    def create(self, nbytes: int) -> None:
        try:
            extent = self.pool.create(nbytes)
        except (HostPoolFull, PoolFull):
            return
        assert extent.pages == -(-nbytes // PAGE)
        self.contents[extent], self.pins[extent] = None, 0

    @rule(data=st.data())
    def destroy(self, data: st.DataObject) -> None:
        for extent in self.some(data, lambda e: not self.pins[e])[:1]:
            self.pool.destroy(extent)
            del self.contents[extent], self.pins[extent]
            self.writable.discard(extent)

    @rule(data=st.data(), fault=faults(2))
    def fill(self, data: st.DataObject, fault: int | None) -> None:
        for extent in self.some(data, lambda e: True)[:1]:
            bytes_ = bytes([self.next_value()]) * extent.nbytes
            refused = self.pool.table.entry(extent).frame is not None
            if self.attempt(fault, lambda e=extent, b=bytes_: self.pool.fill(e, b), PageError):
                assert not refused
                self.contents[extent] = bytes_

    @rule(data=st.data(), fault=faults(6))
    def prefetch(self, data: st.DataObject, fault: int | None) -> None:
        extents = self.some(data, lambda e: True)
        before = {extent for extent in self.contents if self.pool.table.entry(extent).frame is not None}
        pinned = [extent for extent in before if self.pins[extent]]
        self.attempt(fault, lambda: self.pool.prefetch(*extents))
        assert all(self.pool.table.entry(extent).frame is not None for extent in pinned)

    @rule(data=st.data(), write=st.booleans(), fault=faults(8))
    def acquire(self, data: st.DataObject, write: bool, fault: int | None) -> None:
        extents = self.some(data, lambda e: write or self.contents[e] is not None)
        if not self.attempt(fault, lambda: self.pool.acquire(*extents, write=write), PoolFull):
            return
        for extent in extents:
            assert self.pool.state(extent) is PageState.IN_DEVICE
            self.pins[extent] += 1
            if write:
                self.writable.add(extent)
            if self.contents[extent] is None:
                self.witness.stamp(self.pool, extent, value := self.next_value())
                self.contents[extent] = bytes([value]) * extent.nbytes

    @rule(data=st.data())
    def look(self, data: st.DataObject) -> None:
        for extent in self.some(data, lambda e: self.pins[e]):
            self.witness.peek(self.pool, extent, self.contents[extent] or b"")

    @rule(data=st.data(), share=st.integers(0, 8))
    def stamp(self, data: st.DataObject, share: int) -> None:
        for extent in self.some(data, lambda e: self.pins[e] and e in self.writable)[:1]:
            start = extent.nbytes * share // 9
            self.witness.stamp(self.pool, extent, value := self.next_value(), start)
            before = self.contents[extent] or b""
            self.contents[extent] = before[:start] + bytes([value]) * (extent.nbytes - start)

    @rule(data=st.data(), fault=faults(1))
    def release(self, data: st.DataObject, fault: int | None) -> None:
        extents = self.some(data, lambda e: self.pins[e])
        if self.attempt(fault, lambda: self.pool.release(*extents)):
            for extent in extents:
                self.pins[extent] -= 1
                if not self.pins[extent]:
                    self.writable.discard(extent)

    @rule(data=st.data(), fault=faults(4))
    def write_back(self, data: st.DataObject, fault: int | None) -> None:
        extents = self.some(data, lambda e: not self.pins[e])
        self.attempt(fault, lambda: self.pool.write_back(*extents))

    @rule(data=st.data(), fault=faults(4))
    def evict(self, data: st.DataObject, fault: int | None) -> None:
        for extent in self.some(data, lambda e: not self.pins[e])[:1]:
            if self.attempt(fault, lambda e=extent: self.pool.evict(e)):
                assert self.pool.table.entry(extent).frame is None

    @rule(data=st.data(), fault=faults(4))
    def read(self, data: st.DataObject, fault: int | None) -> None:
        for extent in self.some(data, lambda e: not self.pins[e] and self.contents[e] is not None)[:1]:
            seen: list[torch.Tensor] = []
            if self.attempt(fault, lambda e=extent, into=seen: into.append(self.pool.read(e))):
                assert seen[0].numpy().tobytes() == self.contents[extent]

    @rule()
    def wait(self) -> None:
        self.witness.check()

    @precondition(lambda self: hasattr(self, "pool"))
    @invariant()
    def the_table_is_sound(self) -> None:
        table = self.pool.table
        table.check()
        assert {entry.extent for entry in table} == set(self.contents)
        for entry in table:
            assert entry.pins == self.pins[entry.extent]
            for page, frame in zip(entry.extent.numbers, entry.frames, strict=False):
                assert (table.page_in(frame), table.frame_of(page)) == (page, frame)
        held = sum(extent.pages for extent, pins in self.pins.items() if pins)
        assert self.pool.statistics().pinned_frames == held

    @precondition(lambda self: hasattr(self, "pool"))
    @invariant()
    def nothing_races(self) -> None:
        assert not self.device.hazards, self.device.hazards[0].report()
        assert not self.device.state_faults, self.device.state_faults[0].report()

    def teardown(self) -> None:
        if not hasattr(self, "pool"):
            return
        self.witness.check()
        for extent, expected in self.contents.items():
            for _ in range(self.pins[extent]):
                self.pool.release(extent)
            if expected is not None:
                assert self.pool.read(extent).numpy().tobytes() == expected
        self.nothing_races()
        self.pool.close()
        self.pool.close()
        self.device.close()


TestRandomPrograms = PoolMachine.TestCase
TestRandomPrograms.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
