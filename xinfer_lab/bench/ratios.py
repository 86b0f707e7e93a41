"""Computes what the rows of a report come to: each figure that a target is set for, and the waterfall."""

from __future__ import annotations

from collections.abc import Sequence

from xinfer_lab.bench.rows import (
    COPIES,
    EXPERTS_DECODE,
    FETCHED_AHEAD,
    PAGED_HITS,
    RECOMPUTED,
    Report,
    Row,
    is_steady,
)
from xinfer_lab.bench.target import seconds
from xinfer_lab.bench.targets import PEERS, link_of

__all__ = ["WATERFALL", "ratios", "waterfall"]

WATERFALL = (
    "serial, pageable", "serial, pinned", "streaming, 2 slots", FETCHED_AHEAD, PAGED_HITS, "planned", "compressed",
)  # fmt: skip
"""What takes a run from naive to best, step by step, by the beginning of each row's name."""


def waterfall(report: Report, workload: str) -> list[Row]:
    """The fastest row of each step of `WATERFALL` that was measured at ``workload``."""
    steps = []
    for name in WATERFALL:
        rows = [row for row in report.rows if row.name.startswith(name) and row.workload == workload and row.timing]
        if rows:
            steps.append(min(rows, key=seconds))
    return steps


def ratios(report: Report) -> dict[str, float]:
    """Figures by name; those whose rows were not measured are left out."""
    found: dict[str, float] = {}
    for workload in dict.fromkeys(row.workload for row in report.rows):
        found |= _of(report, workload)
    for row in report.rows:
        if row.timing is not None and row.predicted is not None and is_steady(row.timing):
            found[f"predicted over measured: {row.name}, {row.workload}"] = row.predicted / row.timing.median
        if row.peak and row.planned:
            found[f"peak over planned: {row.name}, {row.workload}"] = row.peak / row.planned
    return found


def _of(report: Report, workload: str) -> dict[str, float]:
    found: dict[str, float] = {}

    def ratio(name: str, above: Row | None, below: Row | None) -> None:
        if above is not None and below is not None:
            found[f"{workload}: {name}"] = seconds(above) / seconds(below)

    resident, serial = report.find("resident", workload), report.find("serial, pinned", workload)
    streaming, pageable = report.find("streaming, 2 slots", workload), report.find("serial, pageable", workload)
    if streaming is not None and streaming.rate is not None and workload == "decode":
        found[f"{workload}: streaming's bytes a second over the link's"] = streaming.rate / link_of(report, streaming)
    ratio("streaming over resident", streaming, resident)
    ratio("pageable serial over pinned serial", pageable, serial)
    ratio("pinned serial over streaming", serial, streaming)
    rows = [row for row in report.rows if row.workload == workload and row.timing is not None]
    peers = [row for row in rows if row.name.startswith(PEERS)]
    ratio("best peer over streaming", min(peers, key=seconds, default=None), streaming)
    ahead, hits = report.find(FETCHED_AHEAD, workload), report.find(PAGED_HITS, workload)
    ratio("pinned serial over pages that are fetched ahead", serial, ahead)
    ratio("pages that are fetched ahead over those that stay too", ahead, hits)
    best = [row for row in rows if row.name.startswith(("planned", "compressed", "streaming, 2", "paged"))]
    ratio("pageable serial over our best", pageable, min(best, key=seconds, default=None))
    found |= _of_pages(report, workload, rows)
    for row in rows:
        link = link_of(report, row)
        if row.name.startswith(("planned", "compressed")) and row.bound is not None:
            found[f"{workload}: {row.name}, time over bound"] = seconds(row) / row.bound
        if (
            row.name.startswith("compressed")
            and row.name.endswith("slots")
            and streaming is not None
            and streaming.moved
        ):
            effective = streaming.moved / seconds(row) / link
            found[f"{workload}: {row.name}, bytes of plain weights a second over the link's"] = effective
        if row.name.startswith("compressed") and not row.name.endswith("slots"):
            plain = next((other for other in rows if other.name.startswith("planned") and other.moved), None)
            moved = report.settings.get("ideal_peer_moves", {}).get(workload, plain.moved if plain else None)
            if moved:
                name = f"{workload}: an ideal peer of the same budget over {row.name}"
                found[name] = moved / link / seconds(row)
        tier = row.name.removeprefix("streaming, ")
        if tier in ("registered", "pinned", "staged") and row.rate is not None:
            found[f"{workload}: {row.name}, bytes a second over the link's"] = row.rate / link
    ratio("pin_memory() first over registered", report.find("pin_memory() first", workload),
          report.find("streaming, registered", workload))  # fmt: skip
    return found


def _of_pages(report: Report, workload: str, rows: Sequence[Row]) -> dict[str, float]:
    """What is told of pages, and of no other rows."""
    found: dict[str, float] = {}
    pageable = report.find("serial, pageable", workload)
    for row in rows:
        if workload == COPIES and row.rate:
            found[f"{workload}: {row.name}, bytes a second over the link's one way"] = row.rate / link_of(report, row)
        if workload == EXPERTS_DECODE:
            found[f"{workload}: {row.name}, tokens a second"] = 1 / seconds(row)
        if row.name.startswith("paged cache") and (again := report.find(RECOMPUTED, workload)) is not None:
            found[f"{workload}: {RECOMPUTED} over {row.name}"] = seconds(again) / seconds(row)
        if row.name == PAGED_HITS and pageable is not None:
            found[f"{workload}: less latency than pageable serial"] = 1 - seconds(row) / seconds(pageable)
    return found
