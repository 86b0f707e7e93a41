"""Shows time and bytes to people: units, ticks at round numbers, and seconds mapped to pixels or columns."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["TimeScale", "TimeUnit", "byte_ticks", "format_share", "format_time", "round_step", "time_unit"]


@dataclass(frozen=True, slots=True)
class TimeUnit:
    """A unit of time: ``seconds`` each."""

    name: str
    seconds: float


_UNITS = (TimeUnit("s", 1.0), TimeUnit("ms", 1e-3), TimeUnit("µs", 1e-6), TimeUnit("ns", 1e-9))


def time_unit(span: float) -> TimeUnit:
    """The unit in which ``span`` seconds is a number of at least 1 (below a nanosecond: nanoseconds; 0: seconds)."""
    if span <= 0:
        return _UNITS[0]
    # A little slack: 1e-3 seconds summed up from parts are still a millisecond.
    return next((unit for unit in _UNITS if span >= unit.seconds * (1 - 1e-9)), _UNITS[-1])


def format_time(seconds: float) -> str:
    """``seconds`` with three significant digits: ``0.00123`` -> ``1.23 ms``; from 1000 s on, to the second."""
    if seconds == 0:
        return "0 s"
    rounded = float(f"{seconds:.3g}")
    unit = time_unit(abs(rounded))
    value = seconds / unit.seconds
    digits = max(0, 2 - math.floor(math.log10(abs(rounded / unit.seconds)) + 1e-9))
    return f"{value:.{min(digits, 6)}f} {unit.name}"


def format_share(part: float, whole: float) -> str:
    """``part`` of ``whole`` in percent, without decimals; ``0 %`` of nothing."""
    return f"{100 * part / whole:.0f} %" if whole > 0 else "0 %"


def round_step(span: float, most: int) -> float:
    """The smallest of 1, 2, 5 times a power of ten that divides ``span`` into at most ``most`` parts."""
    if not span > 0 or most < 1:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(span / most))
    return next((power * factor for factor in (1, 2, 5) if power * factor * most >= span * (1 - 1e-9)), power * 10)


def byte_ticks(top: float, most: int) -> list[int]:
    """Round byte counts from 0 up to ``top``: multiples of 1, 2, 4, ... 512 times B, KiB, MiB, GiB or TiB."""
    if top < 1:
        return [0]
    step = 2 ** max(0, math.ceil(math.log2(top / most)))
    return list(range(0, int(top) + 1, step))


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Seconds ``start`` to ``end`` over the pixels (or columns) from ``left`` on, ``width`` of them."""

    start: float
    end: float
    left: float
    width: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.start) and math.isfinite(self.end)) or self.end < self.start:
            raise ValueError(
                f"a time axis needs finite seconds with start <= end, not {self.start} to {self.end}: "
                "look for an event of infinite or undefined length"
            )

    @property
    def span(self) -> float:
        """Seconds from start to end."""
        return self.end - self.start

    def x(self, seconds: float) -> float:
        """Where ``seconds`` lies; times outside land outside. Everything is at the left when the span is zero."""
        return self.left + (self.width * ((seconds - self.start) / self.span) if self.span else 0.0)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Round times within the scale, and their words in the unit of its span, which the first one names."""
        if not self.span:
            return [(self.start, format_time(self.start))]
        step = round_step(self.span, most)
        unit = time_unit(max(self.span, step))
        digits = max(0, -math.floor(math.log10(step / unit.seconds) + 1e-9))
        first = math.ceil(self.start / step - 1e-9)
        last = math.floor(self.end / step + 1e-9)
        words = [(n * step, f"{n * step / unit.seconds:.{digits}f}") for n in range(first, last + 1)]
        return [(at, f"{shown} {unit.name}" if i == 0 else shown) for i, (at, shown) in enumerate(words)]
