"""Draws models whose experts and KV pages share one page pool, so that a policy that keeps the wrong pages shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from xinfer_lab.device.device import Device
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.grading.piece import Case
from xinfer_lab.grading.programs.calls import read_calls
from xinfer_lab.labs.lab5.mixture_case import MixtureCase, run_mixture, with_memory
from xinfer_lab.labs.lab5.pages import read_pages
from xinfer_lab.labs.lab5.parts import neighbours
from xinfer_lab.paging.clock_policy import Clock

__all__ = ["FAR_BELOW", "WELL_ABOVE", "mixtures", "tells_policies_apart"]

FAR_BELOW, WELL_ABOVE = 0.65, 0.85
"""Shares of CLOCK's hit rate: policies that keep the wrong pages find less than the first, LRU and first in, first out
more than the second, in every model in which it matters who leaves. What the gate asks lies between."""


_TRIES = 64
"""Models that are drawn at most."""


class _Ranked:
    """A policy by which the page goes that ranks lowest, by when it came, when it was used last, and how often
    ever."""

    def __init__(self, rank: Callable[[int, int, int], int]) -> None:
        self._rank, self._now = rank, 0
        self._pages: dict[int, tuple[int, int]] = {}
        self._uses: Counter[int] = Counter()

    def placed(self, page: int) -> None:
        self._now += 1
        self._pages[page] = self._now, self._now

    def used(self, page: int) -> None:
        self._now += 1
        self._pages[page] = self._pages[page][0], self._now
        self._uses[page] += 1

    def removed(self, page: int) -> None:
        del self._pages[page]

    def choose(self, may_go: Callable[[int], bool], /) -> int | None:
        return min((page for page in self._pages if may_go(page)), key=self._ranked, default=None)

    def _ranked(self, page: int) -> int:
        return self._rank(*self._pages[page], self._uses[page])


GOOD: tuple[Callable[[int, int, int], int], ...] = (lambda came, last, uses: last, lambda came, last, uses: came)
"""Least recently used; first in, first out."""
BAD: tuple[Callable[[int, int, int], int], ...] = (lambda came, last, uses: -last, lambda came, last, uses: -uses)
"""What was used last goes; what was used most."""


def tells_policies_apart(case: MixtureCase) -> bool:
    """Whether pools under policies that make sense find `WELL_ABOVE` of what CLOCK's finds and more, and those under
    policies that do not `FAR_BELOW` and less."""
    clocks = _hits(case, Clock)
    return all(_hits(case, partial(_Ranked, rank)) <= FAR_BELOW * clocks for rank in BAD) and all(
        _hits(case, partial(_Ranked, rank)) >= WELL_ABOVE * clocks for rank in GOOD
    )


def _hits(case: MixtureCase, policy: Callable[[], Any]) -> int:
    """Acquisitions less pages brought, in a run of the model with the course's parts and ``policy``."""
    devices: list[EmulatedDevice] = []
    notes: list[Any] = []

    def open_device(**options: Any) -> Device:
        devices.append(EmulatedDevice(check=False))
        devices[-1].calls = notes  # type: ignore[attr-defined]  # `noted` keeps its notes there
        return devices[-1]

    run_mixture(case, {**neighbours(""), "Clock": policy}, open_device)
    pages = read_pages(devices[0].stream, read_calls(notes), case.shape)
    return sum(call.name == "acquire" for call in pages.calls) - len(pages.brought)


def mixtures(random: Random) -> list[Case]:
    """Two models whose experts do not fit: one where it matters who leaves (`tells_policies_apart`), one where pages
    come and go all the time, so that the order of commands matters."""
    drawn = (_wide(random) for _ in range(_TRIES))
    # Nearly every second model does. Grading must end whatever is drawn: the rule holds for any model.
    wide = next(filter(tells_policies_apart, drawn), None) or _wide(random)
    tight = _drawn(random, layers=2, frames=2, steps=4, prompt=random.randint(4, 5), batch=2)
    return [Case(case.label, case.inputs()) for case in map(with_memory, (wide, tight))]


def _wide(random: Random) -> MixtureCase:
    return _drawn(random, layers=3, frames=random.randint(13, 15), steps=5, prompt=random.randint(3, 5), batch=1)


def _drawn(random: Random, **sizes: int) -> MixtureCase:
    dtype = random.choice(("float32", "bfloat16", "float16"))
    return MixtureCase(**sizes, experts=6, per_token=2, dtype=dtype, seed=random.randrange(2**31), memory=0)
