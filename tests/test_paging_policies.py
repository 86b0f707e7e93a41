"""Eviction policies: what each evicts, and what it makes of a sequence of uses."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.project import text
from xinfer_lab.labs.lab5.given.replacement import compare_policies, count_hits, cyclic_bound, cyclic_scan
from xinfer_lab.paging.belady import Belady
from xinfer_lab.paging.clock_policy import Clock
from xinfer_lab.paging.lru import LeastRecentlyUsed
from xinfer_lab.paging.policy import POLICIES, open_policy


def anybody(page: int) -> bool:
    return True


def placed(policy, *pages):
    for page in pages:
        policy.placed(page)
        policy.used(page)
    return policy


def test_lru_evicts_what_was_used_longest_ago():
    policy = placed(LeastRecentlyUsed(), 1, 2, 3)
    policy.used(1)
    assert policy.choose(anybody) == 2
    assert policy.choose(lambda page: page != 2) == 3
    policy.removed(2)
    assert policy.choose(anybody) == 3
    assert policy.choose(lambda page: False) is None


def test_clock_gives_a_second_chance_and_passes_by_what_may_not_go():
    policy = placed(Clock(), 1, 2, 3)
    assert policy.choose(anybody) == 1, "all were marked; the second round finds the first of them"
    fresh = placed(Clock(), 1, 2, 3)
    fresh.choose(anybody)
    fresh.used(2)
    assert fresh.choose(lambda page: page != 1) == 3, "2 was used since the hand came by"
    assert fresh.choose(lambda page: False) is None


def test_a_page_that_may_not_go_keeps_its_mark():
    policy = placed(Clock(), 1, 2)
    assert policy.choose(lambda page: page == 2) == 2
    assert policy.choose(anybody) == 2, "1 is still marked"


def test_belady_evicts_what_is_needed_last_and_never_for_something_needed_later():
    policy = Belady([1, 2, 3, 1, 2, 4, 3])
    placed(policy, 1, 2, 3)
    assert policy.choose(anybody) == 3
    assert policy.choose(lambda page: page != 3) == 2
    assert policy.choose(anybody, incoming=4) == 3
    assert policy.choose(lambda page: page != 3, incoming=4) is None, "1 and 2 are needed before 4"
    policy.foresee([5])
    assert policy.choose(anybody, incoming=5) is None
    policy.expect(3, 100)
    assert policy.choose(anybody) == 3


@pytest.mark.parametrize(("pages", "frames"), [(3, 2), (6, 2), (6, 5), (28, 9), (28, 27), (10, 1)])
def test_on_a_cyclic_scan_lru_never_hits_and_belady_reaches_the_bound(pages, frames):
    rounds = 40
    found = {item.policy: item for item in compare_policies(cyclic_scan(pages, rounds), frames)}
    assert found["lru"].hits == 0
    assert found["clock"].hits == 0
    # The first round only fills the frames.
    assert abs(found["belady"].hits - (rounds - 1) * cyclic_bound(pages, frames)) <= frames
    assert found["belady"].misses == found["belady"].uses - found["belady"].hits


@pytest.mark.parametrize("policy", POLICIES)
def test_with_as_many_frames_as_pages_every_use_after_the_first_is_a_hit(policy):
    uses = cyclic_scan(7, 5)
    (found,) = compare_policies(uses, 7, [policy])
    assert found.hits == 4 * 7
    assert found.hit_rate == 0.8


def most_hits(uses: tuple[int, ...], frames: int) -> int:
    """The most hits that are possible, by trying every choice."""
    best = {frozenset[int](): 0}
    for page in uses:
        after: dict[frozenset[int], int] = {}
        for there, hits in best.items():
            if page in there:
                options = [(there, hits + 1)]
            elif len(there) < frames:
                options = [(there | {page}, hits)]
            else:
                options = [((there - {victim}) | {page}, hits) for victim in there]
            for key, value in options:
                after[key] = max(after.get(key, -1), value)
        best = after
    return max(best.values())


@given(st.lists(st.integers(0, 5), max_size=14), st.integers(1, 4))
def test_belady_is_the_best_that_is_possible_and_no_other_policy_is_better(uses, frames):
    best = most_hits(tuple(uses), frames)
    found = {item.policy: item.hits for item in compare_policies(uses, frames)}
    assert found["belady"] == best
    assert max(found["lru"], found["clock"]) <= best


@given(st.lists(st.integers(0, 6), max_size=30), st.integers(1, 5))
def test_lru_is_what_its_name_says(uses, frames):
    there: list[int] = []
    hits = 0
    for page in uses:
        if page in there:
            hits += 1
            there.remove(page)
        elif len(there) == frames:
            del there[0]
        there.append(page)
    assert count_hits(LeastRecentlyUsed(), uses, frames) == hits


@given(st.lists(st.integers(0, 6), max_size=30), st.integers(1, 5))
def test_clock_is_a_ring_with_a_hand(uses, frames):
    """Beside the textbook's version: an array of frames, a reference bit each, and a hand that moves past what it
    replaced."""
    there: list[int] = []
    marks: list[bool] = []
    hand = hits = 0
    for page in uses:
        if page in there:
            hits += 1
            marks[there.index(page)] = True
        elif len(there) < frames:
            there.append(page)
            marks.append(True)
        else:
            while marks[hand]:
                marks[hand] = False
                hand = (hand + 1) % frames
            there[hand], marks[hand] = page, True
            hand = (hand + 1) % frames
    assert count_hits(Clock(), uses, frames) == hits


def test_names_and_sizes_that_cannot_be():
    with pytest.raises(ValueError, match="no eviction policy 'random'"):
        open_policy("random")
    with pytest.raises(ValueError, match="at least one frame"):
        count_hits(Clock(), [1], 0)
    for pages, frames in product((3,), (0, 3, 4)):
        with pytest.raises(ValueError, match="1 to 2 frames"):
            cyclic_bound(pages, frames)


def test_the_page_about_the_pool_says_what_the_policies_do():
    page, rounds = text("docs/page-pool.md"), 100
    for frames in (7, 14, 21, 27):
        found = {item.policy: item.hits / (rounds - 1) for item in compare_policies(cyclic_scan(28, rounds), frames)}
        row = [found["lru"], found["clock"], found["belady"], cyclic_bound(28, frames)]
        assert f"| {frames} | {' | '.join(f'{value:.1f}' for value in row)} |" in page
