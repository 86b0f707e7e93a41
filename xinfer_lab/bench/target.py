"""A target of a benchmark: its name, the figures of a report that bear on it, and whether they reach it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from xinfer_lab.bench.rows import Report, Row

__all__ = ["Figure", "Target", "Verdict", "link_of", "over", "peak_over_plan", "seconds", "verdict_of"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured ``value``, the ``rows`` that it comes from (ours first), and a ``limit`` of its own where the target's
    depends on what was measured."""

    value: float
    rows: tuple[Row, ...]
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """``find`` gives the figures of a report that bear on it. They must be at least ``least`` and at most ``most``."""

    name: str
    find: Callable[[Report], Iterable[Figure]]
    least: float | None = None
    most: float | None = None

    def wanted(self, figure: Figure | None = None) -> str:
        """The limits, in words."""
        most = self.most if figure is None or figure.limit is None else figure.limit
        if self.least is not None and most is not None:
            return f"{self.least:g} to {most:g}"
        return f"at least {self.least:g}" if self.least is not None else f"at most {most:.4g}"

    def slack(self, figure: Figure) -> float:
        """How far within the limits ``figure`` is; negative where it misses them."""
        most = self.most if figure.limit is None else figure.limit
        over = figure.value - self.least if self.least is not None else float("inf")
        under = most - figure.value if most is not None else float("inf")
        return min(over, under)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a target: ``value`` and ``met`` are None where nothing that bears on it was measured.

    ``difference`` is the largest of the rows' differences from their resident run, NaN included; a figure whose rows
    differ is not a result, and not met.
    """

    name: str
    wanted: str
    value: float | None = None
    met: bool | None = None
    difference: float | None = None
    rows: str = ""


def link_of(report: Report, row: Row) -> float:
    """Bytes a second of the pinned link when ``row`` was measured."""
    return row.link or float(report.spec["link_bandwidth"])


def seconds(row: Row) -> float:
    """The median of the row's passes, which was timed."""
    assert row.timing is not None
    return row.timing.median


def over(above: Row | None, below: Row | None) -> Iterator[Figure]:
    """The time of ``above`` over that of ``below``, which is ours."""
    if above is not None and below is not None:
        yield Figure(seconds(above) / seconds(below), (below, above))


def peak_over_plan(report: Report) -> Iterator[Figure]:
    """The device memory that each of our rows took, over what was planned."""
    for row in report.rows:
        if row.timing is not None and row.peak and row.planned and not row.peer:
            yield Figure(row.peak / row.planned, (row,))


def verdict_of(target: Target, reports: Sequence[Report]) -> Verdict:
    """The verdict on ``target`` in these runs: of several rows that bear on it, the worst counts."""
    figures = [figure for report in reports for figure in target.find(report)]
    worst = min(figures, key=target.slack, default=None)
    if worst is None:
        return Verdict(target.name, target.wanted())
    # A peer is compared with its own resident run.
    seen = [row.difference for row in worst.rows if row.difference is not None and not row.peer]
    difference = next((value for value in seen if value != value), max(seen, default=None))
    right = all(value == 0 for value in seen) and worst.rows[0].difference is not None
    rows = "; ".join(f"{row.name}, {row.workload}" for row in worst.rows)
    met = right and target.slack(worst) >= 0
    return Verdict(target.name, target.wanted(worst), worst.value, met, difference, rows)
