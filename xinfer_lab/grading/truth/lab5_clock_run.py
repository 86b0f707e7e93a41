"""Lab 5: what CLOCK makes of the requests that a pool was given: pages alone, no bytes and no queues."""

from __future__ import annotations

from dataclasses import dataclass, field

from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.grading.programs.pages import PoolCall
from xinfer_lab.paging.clock import Clock

__all__ = ["ClockRun", "leaves_by_clock"]


@dataclass(slots=True)
class ClockRun:
    """A pool of ``frames`` frames under CLOCK: the pages that it ``held`` after the calls so far, and how many it
    ``brought``."""

    frames: int
    held: set[int] = field(default_factory=set)
    brought: int = 0
    _policy: Clock = field(default_factory=Clock)
    _pins: dict[int, int] = field(default_factory=dict)
    _arrived: set[int] = field(default_factory=set)

    def take(self, call: PoolCall) -> None:
        """What the pool is asked next."""
        if call.name == "prefetch":
            self._bring(call.page, ahead=True)
        elif call.name == "acquire" and self._bring(call.page, ahead=False):
            self._arrived.add(call.page)
            self._pins[call.page] = self._pins.get(call.page, 0) + 1
            self._policy.used(call.page)
        elif call.name == "release":
            self._pins[call.page] = max(0, self._pins.get(call.page, 0) - 1)
        elif call.name == "evict" and call.page in self.held:
            self._evict(call.page)

    def _bring(self, page: int, *, ahead: bool) -> bool:
        if page in self.held:
            return True
        if len(self.held) == self.frames:
            victim = self._policy.choose(
                lambda other: not self._pins.get(other, 0) and not (ahead and other not in self._arrived)
            )
            if victim is None:
                return False
            self._evict(victim)
        self._policy.placed(page)
        self.held.add(page)
        self.brought += 1
        return True

    def _evict(self, page: int) -> None:
        self._policy.removed(page)
        self.held.remove(page)
        self._arrived.discard(page)


def leaves_by_clock(evidence: Evidence) -> Fault | None:
    """At each call the pages are there that CLOCK would have kept."""
    clock = ClockRun(evidence.case.shape.frames)
    for call in evidence.pages.calls:
        there = set(call.before.pages.values())
        if there != clock.held:
            gone, stayed = sorted(clock.held - there), sorted(there - clock.held)
            if not stayed:
                return Fault(
                    "victim",
                    "A page has left for which nobody needed the frame.",
                    expected=f"page {' and '.join(map(str, gone))} stays",
                    got=f"gone, before {call.name} of page {call.page}",
                    show=False,
                )
            return Fault(
                "victim",
                "Another page leaves than CLOCK would choose.",
                expected=f"page {' and '.join(map(str, gone))} stays, page {' and '.join(map(str, stayed))} leaves",
                got=f"the other way round, before {call.name} of page {call.page}",
                show=False,
            )
        clock.take(call)
    return None
