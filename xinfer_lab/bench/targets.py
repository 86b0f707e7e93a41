"""The targets of a benchmark: each by its name, the measured figure, and whether it was met.

    python -m xinfer_lab.bench.targets REPORT.json [REPORT.json ...]

prints the table of several runs together. Where more rows than one bear on a target, the worst of them counts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from xinfer_lab.bench.link_targets import LINK_TARGETS, LINKS
from xinfer_lab.bench.page_targets import PAGE_TARGETS, PAGES
from xinfer_lab.bench.rows import FIRST_TOKEN, FROM_FILE, Report, Row, is_steady
from xinfer_lab.bench.target import Figure, Target, Verdict, link_of, over, peak_over_plan, seconds, verdict_of

__all__ = ["TARGETS", "Target", "Verdict", "link_of", "main", "table", "verdicts"]

PEERS = ("prefetching offloader", "diffusers group offloading", "accelerate")
"""How the names of rows begin that move layers as others do."""

_LARGE = 60 * 10**9
"""A model with at least this many bytes of layers counts as the 65 GB one."""


def _timed(report: Report, workload: str | None = None) -> list[Row]:
    return [row for row in report.rows if row.timing is not None and workload in (None, row.workload)]


def _prefills(report: Report) -> list[str]:
    return list(dict.fromkeys(row.workload for row in _timed(report) if row.workload.startswith("prefill ")))


def _fastest(rows: Iterable[Row]) -> Row | None:
    return min(rows, key=seconds, default=None)


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
        yield from over(_fastest(peers), report.find("streaming, 2 slots", workload))


def _hidden_prefill(report: Report) -> Iterator[Figure]:
    layers = report.settings["model"]["layers"]
    for workload in _prefills(report):
        resident, row = report.find("resident", workload), report.find("streaming, 2 slots", workload)
        if resident is None or row is None or not row.moved:
            continue
        compute = seconds(resident) / layers
        transfer = row.moved / layers / link_of(report, row)
        if compute >= transfer:
            limit = 1 + transfer / (layers * compute) + 0.01
            yield Figure(seconds(row) / seconds(resident), (row, resident), limit)


def _overlap(report: Report) -> Iterator[Figure]:
    serial, row = (report.find(name, "prefill 8192") for name in ("serial, pinned", "streaming, 2 slots"))
    if serial is not None and row is not None:
        yield Figure(seconds(serial) / seconds(row), (row, serial))


def _effective(report: Report, names: Sequence[str]) -> Iterator[Figure]:
    """Bytes of plain weights a second of coded layers that all stream, over the link: the best of ``names``."""
    plain = report.find("streaming, 2 slots", "decode")
    rows = [report.find(f"compressed {name}, 2 slots", "decode") for name in names]
    if plain is not None and plain.moved and (best := _fastest(row for row in rows if row is not None)) is not None:
        yield Figure(plain.moved / seconds(best) / link_of(report, best), (best, plain))


def _ideal_peer(report: Report) -> Iterator[Figure]:
    moved = report.settings.get("ideal_peer_moves", {}).get("decode")
    best = _fastest(_under_budget(report))
    if moved and best is not None:
        yield Figure(moved / link_of(report, best) / seconds(best), (best,))


def _compiled_peer(report: Report) -> Iterator[Figure]:
    """From 10 GB of layers on a step takes long enough that little may be lost around it."""
    ours, peer = report.find("resident", "decode"), report.find("transformers, compiled", "decode")
    if ours is not None and peer is not None:
        yield Figure(seconds(ours) / seconds(peer), (ours, peer), 1.10 if report.layer_bytes >= 10**10 else 1.25)


def _eager_peer(report: Report) -> Iterator[Figure]:
    for workload in _prefills(report):
        ours, peer = report.find("resident", workload), report.find("transformers, resident", workload)
        if ours is not None and peer is not None:
            yield Figure(seconds(ours) / seconds(peer), (ours, peer))


def _over_bound(report: Report) -> Iterator[Figure]:
    for row in _under_budget(report):
        if row.bound:
            yield Figure(seconds(row) / row.bound, (row,))


def _first_token(report: Report) -> Iterator[Figure]:
    tiers = [row for row in _timed(report, FIRST_TOKEN) if row.name.startswith("streaming, ")]
    yield from over(report.find("pin_memory() first", FIRST_TOKEN), _fastest(tiers))


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
        yield from over(report.find("serial, pageable", "decode"), _fastest(_under_budget(report)))


TARGETS = (
    Target("streaming decode, 2 slots: bytes a second over the measured pinned link", _streaming_rate, least=0.99),
    Target("decode: time of the best peer over streaming", lambda r: _best_peer(r, ["decode"]), least=0.98),
    Target("prefill: time of the best peer over streaming", lambda r: _best_peer(r, _prefills(r)), least=0.98),
    Target("resident decode: time over transformers, compiled, with a static cache", _compiled_peer, most=1.25),
    Target("resident prefill: time over transformers, eager", _eager_peer, most=1.00),
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
    Target("peak device memory over the plan's own figure", peak_over_plan, most=1.02),
)  # fmt: skip
"""In the order of the table that they are taken from."""


def verdicts(*reports: Report) -> list[Verdict]:
    """The verdict on each target of these runs, all taken together: `PAGE_TARGETS` for those of pages, `LINK_TARGETS`
    for those of several links, else `TARGETS`."""
    found: list[Verdict] = []
    for suite, targets in ((None, TARGETS), (PAGES, PAGE_TARGETS), (LINKS, LINK_TARGETS)):
        of_suite = [report for report in reports if report.settings.get("suite") == suite]
        if of_suite or (suite is None and not reports):
            found += [verdict_of(target, of_suite) for target in targets]
    return found


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
