"""Neighbours in both memories are moved by one copy: which frames pages are given for that, and what a fault leaves."""

from __future__ import annotations

import pytest

from tests.pool_programs import PAGE, Fault, FaultyDevice, Witness, kernels
from xinfer_lab.device.device import WRITE_BACK
from xinfer_lab.device.records import MAX_NAME, Copy, Signal
from xinfer_lab.paging.errors import PoolFull
from xinfer_lab.paging.extent import Extent, PageState
from xinfer_lab.paging.pool import HybridMemoryPool
from xinfer_lab.paging.table import PageTable
from xinfer_lab.views.page_history import page_history


class WatchedDevice(FaultyDevice):
    """With a witness of its own."""

    witness: Witness


def opened(frames: int = 8, pages: int = 16, schedule: str = "copies_last", **options) -> HybridMemoryPool:
    device = WatchedDevice(kernels=kernels(), schedule=schedule)
    device.witness = Witness(device)
    return HybridMemoryPool(device, frames=frames, pages=pages, page_bytes=PAGE, name="pool", **options)


def filled(pool: HybridMemoryPool, *sizes: int) -> list[Extent]:
    """Extents ``p1``, ``p2``, ..., neighbours at home, that hold their own number in every byte."""
    extents = [pool.create(size, f"p{number}") for number, size in enumerate(sizes, 1)]
    for number, extent in enumerate(extents, 1):
        pool.fill(extent, bytes([number]) * extent.nbytes)
    return extents


def copies(pool: HybridMemoryPool, queue: str = "copy") -> list[tuple[str, int]]:
    return [(r.label, r.dst.size) for r in pool.device.stream if isinstance(r, Copy) and r.queue == queue]


def signals(pool: HybridMemoryPool, queue: str = "copy") -> int:
    return len([r for r in pool.device.stream if isinstance(r, Signal) and r.queue == queue])


def see(pool: HybridMemoryPool, values: dict[Extent, int]) -> None:
    """The direct queue sees these values, and nothing raced."""
    witness = pool.device.witness
    for extent, value in values.items():
        pool.acquire(extent)
        witness.peek(pool, extent, bytes([value]) * extent.nbytes)
        pool.release(extent)
    witness.check()
    pool.table.check()
    assert not pool.device.hazards, pool.device.hazards[0].report()


def write(pool: HybridMemoryPool, values: dict[Extent, int]) -> None:
    witness = pool.device.witness
    pool.acquire(*values, write=True)
    for extent, value in values.items():
        witness.stamp(pool, extent, value)
    pool.release(*values)


def frames_of(pool: HybridMemoryPool, extents: list[Extent]) -> list[int]:
    return [frame for extent in extents for frame in pool.table.entry(extent).frames]


# To the device


@pytest.mark.parametrize("fetch", ["prefetch", "acquire"])
def test_neighbours_that_are_fetched_in_one_call_come_in_one_copy(fetch):
    pool = opened()
    pages = filled(pool, *[PAGE] * 6)
    getattr(pool, fetch)(*pages)
    assert copies(pool) == [("bring p1 + p2 + p3 + p4 + p5 + p6", 6 * PAGE)]
    assert signals(pool) == 1
    assert frames_of(pool, pages) == [2, 3, 4, 5, 6, 7]
    seen = pool.statistics()
    assert (seen.prefetches, seen.misses, seen.bytes_to_device) == (
        *((6, 0) if fetch == "prefetch" else (0, 6)),
        6 * PAGE,
    )
    see(pool, dict(zip(pages, range(1, 7), strict=True)))


def test_extents_of_several_pages_are_neighbours_too():
    pool = opened()
    extents = filled(pool, 2 * PAGE, 3 * PAGE, PAGE)
    pool.prefetch(*extents[:2])
    assert copies(pool) == [("bring p1 + p2", 5 * PAGE)]
    see(pool, dict(zip(extents, (1, 2, 3), strict=True)))


def test_a_page_that_is_used_in_part_is_the_last_of_its_copy():
    """Nothing is moved that nobody asked for."""
    pool = opened()
    pages = filled(pool, PAGE, PAGE - 1, PAGE, 7)
    pool.prefetch(*pages)
    assert copies(pool) == [("bring p1 + p2", 2 * PAGE - 1), ("bring p3 + p4", PAGE + 7)]
    see(pool, dict(zip(pages, range(1, 5), strict=True)))


def test_what_is_not_neighbours_at_home_or_comes_in_another_order_has_a_copy_of_its_own():
    pool = opened()
    one, two, three, four = filled(pool, *[PAGE] * 4)
    pool.prefetch(four, one, two)
    assert copies(pool) == [("bring p4", PAGE), ("bring p1 + p2", 2 * PAGE)]
    see(pool, {one: 1, two: 2, three: 3, four: 4})


def test_frames_that_are_no_neighbours_take_several_copies():
    pool = opened(frames=5, policy="lru")
    pages = filled(pool, *[PAGE] * 9)
    # From the far end: p1 lies in frame 4, p5 in frame 0.
    for page in pages[:5]:
        pool.acquire(page)
    pool.release(*(pages[number] for number in (0, 2, 3)))
    pool.prefetch(*pages[5:8])
    # The frames of p1, p3 and p4 are free then: 4, 2 and 1.
    assert frames_of(pool, pages[5:8]) == [1, 2, 4]
    assert copies(pool)[5:] == [("bring p6 + p7", 2 * PAGE), ("bring p8", PAGE)]
    pool.release(pages[1], pages[4])
    see(pool, dict(zip(pages, range(1, 10), strict=True)))


def test_pages_stay_neighbours_through_a_scan():
    """What left was neighbours, so what takes its place is."""
    pool = opened(frames=4, policy="lru")
    pages = filled(pool, *[PAGE] * 12)
    for _ in range(3):
        for first in range(0, 12, 4):
            group = pages[first : first + 4]
            pool.acquire(*group)
            pool.release(*group)
    assert {size for _, size in copies(pool)} == {4 * PAGE}
    assert len(copies(pool)) == 9


def test_a_run_finds_the_gap_that_holds_it():
    pool = opened(frames=8)
    pages = filled(pool, *[PAGE] * 8)
    pool.acquire(*pages)
    pool.release(*pages)
    pool.evict(pages[1], pages[2], pages[3], pages[6])
    pool.prefetch(*pages[1:4])
    assert frames_of(pool, pages[1:4]) == [1, 2, 3]
    assert len(copies(pool)) == 2


@pytest.mark.parametrize(
    ("free", "count", "expected"),
    [
        ([0, 1, 2, 5, 6], 2, [5, 6]),
        ([0, 1, 2, 5, 6], 3, [0, 1, 2]),
        ([0, 1, 2, 5, 6], 4, [1, 2, 5, 6]),
        ([0, 1, 2, 5, 6], 1, [6]),
        ([0, 1, 2, 5, 6], 0, []),
    ],
)
def test_places_are_neighbours_where_that_can_be(free, count, expected):
    table = PageTable(8)
    for frame in set(range(8)) - set(free):
        table.bind(table.add(Extent(f"e{frame}", frame, 1, PAGE)), frame)
    assert list(table.places(count)) == expected


@pytest.mark.parametrize("fetch", ["prefetch", "acquire"])
def test_a_copy_has_64_pages_at_most_so_that_the_first_ones_go_out_early(fetch):
    pool = opened(frames=160, pages=160)
    pages = filled(pool, *[PAGE] * 150)
    getattr(pool, fetch)(*pages)
    assert [size // PAGE for _, size in copies(pool)] == [64, 64, 22]
    assert signals(pool) == 1
    pool.table.check()


def test_more_than_64_pages_that_do_not_fit_are_not_acquired_and_do_not_take_each_others_place():
    pool = opened(frames=70, pages=100, policy="lru")
    pages = filled(pool, *[PAGE] * 100)
    with pytest.raises(PoolFull, match="; 70 more were asked for in this call"):
        pool.acquire(*pages[:71])
    assert pool.statistics().pinned_frames == 0
    assert pool.statistics().evictions == 0
    assert not pool.prefetch(*pages)
    assert [pool.holds(page) for page in pages] == [True] * 70 + [False] * 30
    see(pool, {page: number for number, page in enumerate(pages, 1) if number in (1, 64, 65, 99)})


def test_names_that_are_too_many_to_read_are_the_first_and_the_last():
    pool = opened(frames=60, pages=60)
    pages = filled(pool, *[PAGE] * 60)
    pool.prefetch(*pages)
    assert copies(pool) == [("bring p1 to p60", 60 * PAGE)]
    assert len("bring " + " + ".join(page.name for page in pages)) > MAX_NAME


# And back


def test_neighbours_that_are_written_back_in_one_call_go_in_one_copy():
    pool = opened()
    pages = filled(pool, *[PAGE] * 5)
    write(pool, {page: 10 + number for number, page in enumerate(pages[:4])})
    pool.write_back(*reversed(pages[:4]), pages[4])
    assert copies(pool, WRITE_BACK) == [("save p1 + p2 + p3 + p4", 4 * PAGE)]
    assert signals(pool, WRITE_BACK) == 1
    seen = pool.statistics()
    assert (seen.write_backs, seen.bytes_to_host, seen.dirty_frames) == (4, 4 * PAGE, 0)
    assert [pool.read(page).tolist() for page in pages[:4]] == [[10 + number] * PAGE for number in range(4)]


def test_what_has_to_leave_for_others_goes_home_in_one_copy():
    pool = opened(frames=4, policy="lru")
    pages = filled(pool, *[PAGE] * 8)
    write(pool, {page: 20 + number for number, page in enumerate(pages[:4])})
    pool.prefetch(*pages[4:])
    assert [label for label, _ in copies(pool, WRITE_BACK)] == ["save p1 + p2 + p3 + p4"]
    assert copies(pool)[1:] == [("bring p5 + p6 + p7 + p8", 4 * PAGE)]
    assert pool.statistics().evictions == 4
    see(pool, dict(zip(pages, (20, 21, 22, 23, 5, 6, 7, 8), strict=True)))


def test_several_are_evicted_in_one_call():
    pool = opened()
    pages = filled(pool, *[PAGE] * 3)
    write(pool, {page: 9 for page in pages})
    pool.evict(*pages, pages[0])
    assert len(copies(pool, WRITE_BACK)) == 1
    assert pool.table.free == 8
    assert {pool.state(page) for page in pages} == {PageState.MIGRATING}


# What stays


def test_prefetching_gives_up_nothing_that_it_was_asked_for():
    pool = opened(frames=2, policy="lru")
    one, two, three = filled(pool, *[PAGE] * 3)
    pool.acquire(one, two)
    pool.release(one, two)
    assert not pool.prefetch(one, two, three)
    assert (pool.holds(one), pool.holds(two), pool.holds(three)) == (True, True, False)
    assert pool.prefetch(two, three)
    assert not pool.holds(one)


def test_acquiring_gives_up_nothing_that_it_was_asked_for():
    pool = opened(frames=2, policy="lru")
    one, two, three = filled(pool, *[PAGE] * 3)
    pool.acquire(one)
    pool.release(one)
    pool.acquire(two)
    pool.release(two)
    # The least recent one is asked for too, behind one that is missing.
    pool.acquire(three, one)
    assert pool.holds(one)
    assert not pool.holds(two)


def test_too_many_in_one_call_say_so_and_nobody_left_for_them():
    pool = opened(frames=3)
    pages = filled(pool, *[PAGE] * 5)
    pool.acquire(pages[0])
    pool.release(pages[0])
    before = len(pool.device.stream)
    with pytest.raises(
        PoolFull, match=r"'p5' needs 1 neighbouring frames of 3, of which 0 are acquired \(\) .*; 3 more"
    ):
        pool.acquire(*pages[1:])
    assert len(pool.device.stream) == before
    assert pool.holds(pages[0])


# Faults


@pytest.mark.parametrize("schedule", ["copies_last", "random(5)"])
@pytest.mark.parametrize("countdown", range(14))
def test_a_fault_in_a_copy_of_many_loses_no_page_and_gives_no_frame_twice(countdown, schedule):
    pool = opened(frames=4, schedule=schedule, policy="lru")
    pages = filled(pool, *[PAGE] * 10)
    values = {page: 30 + number for number, page in enumerate(pages)}
    write(pool, {page: values[page] for page in pages[:4]})
    pool.device.countdown = countdown
    faults = 0
    # Dirty neighbours leave for clean ones, twice; then in an order that makes two runs.
    for group in (pages[4:8], pages[:4], [pages[9], pages[4], pages[5]]):
        changed = {page: values[page] for page in group}
        for step in (lambda: pool.prefetch(*group), lambda: pool.acquire(*group, write=True)):  # noqa: B023
            try:
                step()
            except Fault:
                faults += 1
                pool.table.check()
                assert pool.statistics().pinned_frames == 0
                step()
        pool.device.countdown, left = None, pool.device.countdown
        witness = pool.device.witness
        for page in group:
            witness.stamp(pool, page, changed[page])
        pool.device.countdown = left
        try:
            pool.release(*group)
        except Fault:
            faults += 1
            pool.release(*group)
        pool.table.check()
    pool.device.countdown = None
    values |= {pages[8]: 9}
    see(pool, values)
    assert faults <= 1
    assert [pool.read(page).tolist() for page in pages] == [[values[page]] * PAGE for page in pages]
    pool.close()
    assert not pool.device.hazards


def test_pages_of_a_copy_that_failed_are_where_they_were_and_those_before_it_stay():
    pool = opened()
    pages = filled(pool, PAGE, PAGE, PAGE - 1, PAGE, PAGE)
    pool.device.countdown = 1
    with pytest.raises(Fault):
        pool.prefetch(*pages)
    assert [pool.state(page).name for page in pages] == ["MIGRATING"] * 3 + ["IN_HOST"] * 2
    assert pool.table.free == 5
    seen = pool.statistics()
    assert seen.bytes_to_device == 3 * PAGE - 1
    see(pool, dict(zip(pages, range(1, 6), strict=True)))


@pytest.mark.parametrize("direction", ["in", "out"])
def test_closing_waits_for_a_copy_whose_signal_failed(direction):
    pool = opened(schedule="copies_last")
    pages = filled(pool, *[PAGE] * 3)
    if direction == "out":
        write(pool, {page: 5 for page in pages})
    pool.device.countdown = 1 if direction == "in" else 3
    with pytest.raises(Fault, match="signal"):
        pool.prefetch(*pages) if direction == "in" else pool.write_back(*pages)
    pool.close()
    assert not pool.device.hazards, pool.device.hazards[0].report()


# How it looks


def test_a_picture_names_each_page_of_a_copy():
    pool = opened(frames=4)
    pages = filled(pool, *[PAGE] * 4)
    write(pool, {page: 5 for page in pages})
    pool.write_back(*pages)
    see(pool, dict.fromkeys(pages, 5))
    uses = page_history(pool.device.stream, PAGE, kernels=pool.device.kernels)
    assert uses[0].fetched == ("p1", "p2", "p3", "p4")
    assert [uses[0].contents[frame].name for frame in range(4)] == ["p1", "p2", "p3", "p4"]
    later = next(use for use in uses if use.saved)
    assert later.saved == ("p1", "p2", "p3", "p4")
    assert not any(content.dirty for content in later.contents.values())


def test_a_picture_of_larger_extents_names_what_the_copy_is_called():
    pool = opened(frames=4)
    extents = filled(pool, 2 * PAGE, 2 * PAGE)
    pool.prefetch(*extents)
    see(pool, {extents[0]: 1})
    uses = page_history(pool.device.stream, PAGE, kernels=pool.device.kernels)
    assert {content.name for content in uses[0].contents.values()} == {"p1 + p2"}
