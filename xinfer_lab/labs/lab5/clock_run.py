"""Lab 5: what CLOCK makes of the requests that a pool is given: pages alone, no bytes and no queues."""

from __future__ import annotations

from dataclasses import dataclass, field

from xinfer_lab.paging.clock_policy import Clock

__all__ = ["ClockRun"]


@dataclass(slots=True)
class ClockRun:
    """A pool of ``frames`` frames under CLOCK: the pages that it ``held`` after the requests so far, which of them had
    ``arrived``, how often each is acquired (``pins``), and how many it ``brought``."""

    frames: int
    held: set[int] = field(default_factory=set)
    brought: int = 0
    pins: dict[int, int] = field(default_factory=dict)
    arrived: set[int] = field(default_factory=set)
    _policy: Clock = field(default_factory=Clock)

    def take(self, name: str, page: int) -> bool:
        """What the pool is asked next, by the name of the call; whether it is not refused."""
        match name:
            case "prefetch":
                return self._bring(page, ahead=True)
            case "acquire":
                if not self._bring(page, ahead=False):
                    return False
                self.arrived.add(page)
                self.pins[page] = self.pins.get(page, 0) + 1
                self._policy.used(page)
            case "release":
                self.pins[page] = max(0, self.pins.get(page, 0) - 1)
            case "evict" if page in self.held:
                self._evict(page)
        return True

    def _bring(self, page: int, *, ahead: bool) -> bool:
        if page in self.held:
            return True
        if len(self.held) == self.frames:
            victim = self._policy.choose(
                lambda other: not self.pins.get(other, 0) and not (ahead and other not in self.arrived)
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
        self.arrived.discard(page)
