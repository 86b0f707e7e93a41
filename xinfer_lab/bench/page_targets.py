"""The targets that a benchmark of pages has to reach."""

from __future__ import annotations

from collections.abc import Iterator

from xinfer_lab.bench.rows import BOTH_WAYS, COPIES, IN_A_ROW, PAGED_HITS, RECOMPUTED, Report
from xinfer_lab.bench.target import Figure, Target, link_of, over, peak_over_plan

__all__ = ["PAGES", "PAGE_TARGETS"]

PAGES = "pages"
"""What the settings of such a report call their suite."""


def _rate(report: Report, name: str) -> Iterator[Figure]:
    """Bytes a second of copies over those of the link in one direction."""
    row = report.find(name, COPIES)
    if row is not None and row.rate:
        yield Figure(row.rate / link_of(report, row), (row,))


def _recomputing(report: Report) -> Iterator[Figure]:
    for row in report.rows:
        if row.name.startswith("paged cache") and row.timing is not None:
            yield from over(report.find(RECOMPUTED, row.workload), row)


def _offloading(report: Report) -> Iterator[Figure]:
    for workload in dict.fromkeys(row.workload for row in report.rows):
        yield from over(report.find("serial, pageable", workload), report.find(PAGED_HITS, workload))


PAGE_TARGETS = (
    Target("pages in a row: bytes a second over the pinned link", lambda r: _rate(r, IN_A_ROW), least=0.95),
    Target("pages both ways at once: bytes a second over the link one way", lambda r: _rate(r, BOTH_WAYS), least=1.5),
    Target("a paged cache: time to compute the prefix again over a step's", _recomputing, least=5.0),
    Target("weights of 2.6 times the budget: naive offloading over pages fetched ahead", _offloading, least=6.25),
    Target("peak device memory over the plan's own figure, in pages", peak_over_plan, most=1.02),
)
"""The second to last is 84 % less latency. Experts are reported, without a target."""
