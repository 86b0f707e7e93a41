"""What a benchmark has to reach: each target by its name, the figure that was measured, and whether it was met.

    python -m xinfer_lab.bench.targets REPORT.json [REPORT.json ...]

prints the table of several runs together. Where more rows than one bear on a target, the worst of them counts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from xinfer_lab.bench.rows import FIRST_TOKEN, FROM_FILE, Report, Row, is_steady

__all__ = ["TARGETS", "Target", "Verdict", "link_of", "main", "table", "verdicts"]

PEERS = ("prefetching offloader", "diffusers group offloading", "accelerate")
"""How the names of rows begin that move layers as others do."""

_LARGE = 60 * 10**9
"""Bytes of layers from which on a model counts as the 65 GB one."""


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
    """What came of a target: ``value`` and ``met`` are None where nothing was measured that bears on it.

    ``difference`` is the largest of the rows' differences from their resident run, NaN included; a figure whose rows
    differ is no result, and is not met.
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


def _seconds(row: Row) -> float:
    assert row.timing is not None
    return row.timing.median


def _over(above: Row | None, below: Row | None) -> Iterator[Figure]:
    """The time of ``above`` over that of ``below``, which is ours."""
    if above is not None and below is not None:
        yield Figure(_seconds(above) / _seconds(below), (below, above))


def _timed(report: Report, workload: str | None = None) -> list[Row]:
    return [row for row in report.rows if row.timing is not None and workload in (None, row.workload)]


def _prefills(report: Report) -> list[str]:
    return list(dict.fromkeys(row.workload for row in _timed(report) if row.workload.startswith("prefill ")))


def _fastest(rows: Iterable[Row]) -> Row | None:
    return min(rows, key=_seconds, default=None)


def _under_budget(report: Report, workload: str = "decode") -> list[Row]:
    rows = _timed(report, workload)
    return [row for row in rows if row.name.startswith(("planned", "compressed")) and not row.name.endswith("slots")]


def _streaming_rate(report: Report) -> Iterator[Figure]:
    row = report.find("streaming, 2 slots", "decode")
    if row is not None and row.rate:
        yield Figure(row.rate / link_of(report, row), (row,))


def _best_peer(report: Report, workloads: Sequence[str]) -> Iterator[Figure]:
    for workload in workloads:
        peers = [row for row in _timed(report, workload) if row.peer and row.name.startswith(PEERS)]
        yield from _over(_fastest(peers), report.find("streaming, 2 slots", workload))


def _hidden_prefill(report: Report) -> Iterator[Figure]:
    layers = report.settings["model"]["layers"]
    for workload in _prefills(report):
        resident, row = report.find("resident", workload), report.find("streaming, 2 slots", workload)
        if resident is None or row is None or not row.moved:
            continue
        compute = _seconds(resident) / layers
        transfer = row.moved / layers / link_of(report, row)
        if compute >= transfer:
            limit = 1 + transfer / (layers * compute) + 0.01
            yield Figure(_seconds(row) / _seconds(resident), (row, resident), limit)


def _overlap(report: Report) -> Iterator[Figure]:
    serial, row = (report.find(name, "prefill 8192") for name in ("serial, pinned", "streaming, 2 slots"))
    if serial is not None and row is not None:
        yield Figure(_seconds(serial) / _seconds(row), (row, serial))


def _effective(report: Report, names: Sequence[str]) -> Iterator[Figure]:
    """Bytes of plain weights a second of coded layers that all stream, over the link: the best of ``names``."""
    plain = report.find("streaming, 2 slots", "decode")
    rows = [report.find(f"compressed {name}, 2 slots", "decode") for name in names]
    if plain is not None and plain.moved and (best := _fastest(row for row in rows if row is not None)) is not None:
        yield Figure(plain.moved / _seconds(best) / link_of(report, best), (best, plain))


def _ideal_peer(report: Report) -> Iterator[Figure]:
    moved = report.settings.get("ideal_peer_moves", {}).get("decode")
    best = _fastest(_under_budget(report))
    if moved and best is not None:
        yield Figure(moved / link_of(report, best) / _seconds(best), (best,))


def _over_bound(report: Report) -> Iterator[Figure]:
    for row in _under_budget(report):
        if row.bound:
            yield Figure(_seconds(row) / row.bound, (row,))


def _first_token(report: Report) -> Iterator[Figure]:
    tiers = [row for row in _timed(report, FIRST_TOKEN) if row.name.startswith("streaming, ")]
    yield from _over(report.find("pin_memory() first", FIRST_TOKEN), _fastest(tiers))


def _registered(report: Report) -> Iterator[Figure]:
    row = report.find("streaming, registered", FROM_FILE)
    if row is not None and row.rate:
        yield Figure(row.rate / link_of(report, row), (row,))


def _predicted(report: Report) -> Iterator[Figure]:
    for row in _timed(report):
        if row.timing is not None and row.predicted is not None and is_steady(row.timing):
            yield Figure(row.predicted / row.timing.median, (row,))


def _under_cap(report: Report) -> Iterator[Figure]:
    if report.layer_bytes >= _LARGE:
        yield from _over(report.find("serial, pageable", "decode"), _fastest(_under_budget(report)))


def _peak(report: Report) -> Iterator[Figure]:
    for row in _timed(report):
        if row.peak and row.planned and not row.peer:
            yield Figure(row.peak / row.planned, (row,))


TARGETS = (
    Target("streaming decode, 2 slots: bytes a second over the measured pinned link", _streaming_rate, least=0.99),
    Target("decode: time of the best peer over streaming", lambda r: _best_peer(r, ["decode"]), least=0.98),
    Target("prefill: time of the best peer over streaming", lambda r: _best_peer(r, _prefills(r)), least=0.98),
    Target("streaming prefill that hides its uploads: time over resident", _hidden_prefill, most=1.01),
    Target("8k prefill: pinned serial over overlapped", _overlap, least=1.6),
    Target("4-bit codes, all streaming: bytes of plain weights a second over the link",
           lambda r: _effective(r, ["4bit"]), least=1.28),
    Target("best codec, all streaming: bytes of plain weights a second over the link",
           lambda r: _effective(r, ["4bit", "3bit"]), least=1.40),
    Target("decode under a budget: time of an ideal peer over ours", _ideal_peer, least=1.65),
    Target("decode under a budget: time over the plan's bound", _over_bound, most=1.03),
    Target("from file to first token: pinning everything first over ours", _first_token, least=5.0),
    Target("streaming out of a registered file: bytes a second over the pinned link", _registered, least=0.98),
    Target("predicted by the virtual clock over measured, steady rows", _predicted, least=0.95, most=1.05),
    Target("65 GB model under a cap: naive pageable offloading over ours", _under_cap, least=6.25),
    Target("peak device memory over the plan's own figure", _peak, most=1.02),
)  # fmt: skip
"""In the order of the table that they are taken from."""


def _verdict(target: Target, reports: Sequence[Report]) -> Verdict:
    figures = [figure for report in reports for figure in target.find(report)]
    worst = min(figures, key=target.slack, default=None)
    if worst is None:
        return Verdict(target.name, target.wanted())
    # A peer is held against a resident run of its own.
    seen = [row.difference for row in worst.rows if row.difference is not None and not row.peer]
    difference = next((value for value in seen if value != value), max(seen, default=None))
    right = all(value == 0 for value in seen) and worst.rows[0].difference is not None
    rows = "; ".join(f"{row.name}, {row.workload}" for row in worst.rows)
    met = right and target.slack(worst) >= 0
    return Verdict(target.name, target.wanted(worst), worst.value, met, difference, rows)


def verdicts(*reports: Report) -> list[Verdict]:
    """What came of each of `TARGETS` in these runs together."""
    return [_verdict(target, reports) for target in TARGETS]


def table(found: Sequence[Verdict]) -> list[list[str]]:
    """A row of text for each: name, what is wanted, what was measured, whether it is met, the difference, and where."""
    said = {True: "met", False: "MISSED", None: "not measured"}
    return [
        [
            verdict.name, verdict.wanted, "" if verdict.value is None else f"{verdict.value:.4g}", said[verdict.met],
            "" if verdict.difference is None else f"{verdict.difference:.3g}", verdict.rows,
        ]
        for verdict in found
    ]  # fmt: skip


def main(paths: Sequence[str]) -> int:
    """Print the table of the reports at ``paths``, those that are there; 1 if a target was measured and missed."""
    files = [Path(path) for path in paths]
    reports = [Report.from_dict(json.loads(file.read_text(encoding="utf-8"))) for file in files if file.is_file()]
    found = verdicts(*reports)
    print("| to reach | wanted | measured | | max abs diff | rows |\n| --- | --- | --- | --- | --- | --- |")
    for cells in table(found):
        print(f"| {' | '.join(cells)} |")
    for report in reports:
        if not report.complete:
            print(f"\nA run did not come to its end: {report.machine}")
    return int(any(verdict.met is False for verdict in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
