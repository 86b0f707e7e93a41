"""Models of several sizes side by side: the table of what binds a decode step, from one report for each.

    python -m xinfer_lab.bench.shapes REPORT.json [REPORT.json ...]

prints it: a column for each report, which is named by its folder.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from xinfer_lab.bench.rows import Report, Row
from xinfer_lab.bench.target import link_of, seconds
from xinfer_lab.views.scale import format_time

__all__ = ["main", "shapes_table"]

_Cell = Callable[[Report], str]


def _time(name: str, workload: str = "decode") -> _Cell:
    def cell(report: Report) -> str:
        row = report.find(name, workload)
        return format_time(seconds(row)) if row is not None else ""

    return cell


def _over(name: str, peer: str, workload: Callable[[Report], str] = lambda report: "decode") -> _Cell:
    def cell(report: Report) -> str:
        ours, theirs = report.find(name, workload(report)), report.find(peer, workload(report))
        return f"{seconds(ours) / seconds(theirs):.3f}" if ours is not None and theirs is not None else ""

    return cell


def _link(name: str) -> _Cell:
    """Bytes of plain weights a second over the link's rate."""

    def cell(report: Report) -> str:
        row, plain = report.find(name, "decode"), report.find("streaming, 2 slots", "decode")
        if row is None or plain is None or not plain.moved:
            return ""
        return f"{plain.moved / seconds(row) / link_of(report, row):.3f}"

    return cell


def _prefill(report: Report) -> str:
    return next((row.workload for row in report.rows if row.workload.startswith("prefill ")), "")


def _card(report: Report) -> str:
    row = report.find("resident", "decode")
    return format_time(row.card) if row is not None and row.card else ""


def _budgets(report: Report) -> str:
    """The worst of the rows within a budget: time over the slower of the link and the resident run."""
    found = [seconds(row) / row.bound for row in _planned(report) if row.bound]
    return f"{max(found):.3f}" if found else ""


def _planned(report: Report) -> list[Row]:
    return [
        row
        for row in report.rows
        if row.workload == "decode" and row.timing is not None
        and row.name.startswith(("planned", "compressed")) and not row.name.endswith("slots")
    ]  # fmt: skip


def _predicted(report: Report) -> str:
    found = [row.predicted / seconds(row) for row in report.rows if row.timing is not None and row.predicted]
    return f"{min(found):.3f} to {max(found):.3f}" if found else ""


def _difference(report: Report) -> str:
    found = [row.difference for row in report.rows if row.difference is not None and not row.peer]
    return f"{max(found, key=lambda value: (value != value, value)):.3g}" if found else ""


_LINES: tuple[tuple[str, _Cell], ...] = (
    ("resident", _time("resident")),
    ("transformers, eager", _time("transformers, resident")),
    ("transformers, static cache, compiled", _time("transformers, compiled")),
    ("resident over compiled", _over("resident", "transformers, compiled")),
    ("the card, by bytes and FLOPs", _card),
    ("resident prefill over transformers, eager", _over("resident", "transformers, resident", _prefill)),
    ("streaming, 2 slots: bytes a second over the link", _link("streaming, 2 slots")),
    ("3-bit codes, 2 slots: plain bytes a second over the link", _link("compressed 3bit, 2 slots")),
    ("4-bit codes, 2 slots: plain bytes a second over the link", _link("compressed 4bit, 2 slots")),
    ("within a budget: time over the bound, the worst", _budgets),
    ("predicted over measured, all rows", _predicted),
    ("max abs diff, all rows", _difference),
)


def shapes_table(reports: dict[str, Report]) -> list[list[str]]:
    """The table's lines, the first of which names the columns; what no report has is left out."""
    lines = [["decode step", *reports]]
    for name, cell in _LINES:
        cells = [cell(report) for report in reports.values()]
        if any(cells):
            lines.append([name, *cells])
    return lines


def main(paths: Sequence[str]) -> int:
    """Print the table of the reports at ``paths``; 1 if a row of one of them is no result."""
    files = [Path(path) for path in paths]
    reports = {
        file.parent.name: Report.from_dict(json.loads(file.read_text(encoding="utf-8")))
        for file in files
        if file.is_file()
    }
    head, *lines = shapes_table(reports)
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for cells in lines:
        print(f"| {' | '.join(cells)} |")
    return int(any(report.failed for report in reports.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
