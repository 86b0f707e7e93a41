"""The targets that several links have to reach, as against one, in the same run."""

from __future__ import annotations

from collections.abc import Iterator

from xinfer_lab.bench.rows import Report, Row, is_steady
from xinfer_lab.bench.target import Figure, Target, link_of, over, peak_over_plan, seconds

__all__ = ["LINKS", "LINK_TARGETS"]

LINKS = "links"
"""What the settings of such a report call their suite."""

_STREAMING = "streaming, 2 slots"


def _cards(report: Report) -> int:
    return len(report.settings["cards"])


def _over_all(report: Report, name: str, workload: str) -> Row | None:
    return report.find(f"{name}, {_cards(report)} cards", workload)


def _streamed(report: Report, *, odd: bool) -> Iterator[Figure]:
    """The time of one card's decode step over that of all cards, for each of two."""
    if bool(report.settings["model"]["layers"] % _cards(report)) == odd:
        for figure in over(report.find(_STREAMING, "decode"), _over_all(report, _STREAMING, "decode")):
            yield Figure(2 * figure.value / _cards(report), figure.rows)


def _coded(report: Report) -> Iterator[Figure]:
    plain, row = report.find(_STREAMING, "decode"), _over_all(report, "compressed 3bit, 2 slots", "decode")
    if plain is not None and row is not None and plain.moved:
        yield Figure(plain.moved / seconds(row) / link_of(report, row), (row, plain))


def _planned(report: Report) -> Iterator[Figure]:
    rows = [row for row in report.rows if row.name.startswith("planned") and row.timing is not None]
    one = next((row for row in rows if not row.name.endswith(" cards")), None)
    yield from over(one, next((row for row in rows if row.name.endswith(" cards")), None))


def _prefill(report: Report) -> Iterator[Figure]:
    for workload in dict.fromkeys(row.workload for row in report.rows if row.workload.startswith("prefill ")):
        one, row = report.find(_STREAMING, workload), _over_all(report, _STREAMING, workload)
        if one is not None and row is not None:
            yield Figure(seconds(row) / seconds(one), (row, one))


def _predicted(report: Report) -> Iterator[Figure]:
    for row in report.rows:
        if row.timing is not None and row.predicted is not None and is_steady(row.timing):
            yield Figure(row.predicted / seconds(row), (row,))


LINK_TARGETS = (
    Target("streaming decode: one link's time over that of two", lambda r: _streamed(r, odd=False), least=1.98),
    Target("the same, layers that the cards do not divide", lambda r: _streamed(r, odd=True), least=1.95),
    Target("3-bit codes over all links: bytes of plain weights a second over one link", _coded, least=2.8),
    Target("decode within one card's budget: its time over that of all cards with a share each", _planned, least=1.75),
    Target("streaming prefill: time over all cards over that on one", _prefill, most=1.02),
    Target("predicted by the virtual clock over measured, steady rows", _predicted, least=0.95, most=1.05),
    Target("peak device memory of the fullest card over the plan's own figure", peak_over_plan, most=1.02),
)
