"""Shows a report to people: the table of rows, the ratios, and the charts."""

from __future__ import annotations

from collections.abc import Sequence

from xinfer_lab.bench.ratios import waterfall
from xinfer_lab.bench.rows import COPIES, FETCHED_AHEAD, PAGED_HITS, Report, Row
from xinfer_lab.bench.targets import table, verdicts
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.scale import format_time
from xinfer_lab.views.value_bars import ValueBar, value_bars

__all__ = ["COLUMNS", "charts", "link_change", "markdown", "row_cells"]

COLUMNS = (
    "", "pass", "median", "least", "most", "GB/s\nmoved", "predicted", "bound", "card", "peak", "planned",
    "max abs\ndiff",
)  # fmt: skip
"""Of the table of rows."""


def row_cells(row: Row) -> list[str]:
    """One row as text, in the order of `COLUMNS`."""
    if row.timing is None:
        return [row.name, row.workload, "not run", *[""] * (len(COLUMNS) - 3)]
    timing = row.timing
    return [
        row.name,
        row.workload,
        format_time(timing.median),
        format_time(timing.fastest) if timing.passes > 1 else "",
        format_time(timing.slowest) if timing.passes > 1 else "",
        f"{row.rate / 1e9:.1f}" if row.rate else "",
        format_time(row.predicted) if row.predicted else "",
        format_time(row.bound) if row.bound else "",
        format_time(row.card) if row.card else "",
        format_bytes(row.peak) if row.peak else "",
        format_bytes(row.planned) if row.planned else "",
        "" if row.difference is None else f"{row.difference:.3g}",
    ]


def _kind(row: Row) -> str:
    return "what others do" if row.peer or row.name == "pin_memory() first" else "xinfer_lab"


def charts(report: Report) -> dict[str, Picture]:
    """Pictures by file name: every workload's rows, and the waterfall of those that have one."""
    pictures = {}
    models = report.settings.get("models", {})
    for workload in dict.fromkeys(row.workload for row in report.rows):
        model = models.get(workload, report.settings["model"])
        on = f"{model['layers']} layers of hidden size {model['hidden']}, {report.machine['gpu']}"
        if workload == COPIES:
            on = report.machine["gpu"]
        rows = [row for row in report.rows if row.workload == workload and row.timing is not None]
        stem = workload.replace(",", "").replace(" ", "-")
        if rows:
            title = f"{workload[:1].upper()}{workload[1:]}: {on}"
            pictures[stem] = value_bars([_bar(row, _kind(row)) for row in rows], title=title, mark=_MARK)
        if len(steps := waterfall(report, workload)) > 2:
            bars = [_bar(row, _step(row.name)) for row in steps]
            pictures[f"waterfall-{stem}"] = value_bars(bars, title=f"The waterfall, {workload}: {on}", mark=_MARK)
    return pictures


_MARK = "the least that is possible: max(computing with everything there, bytes moved over the link's rate)"
_STEPS = {
    "serial": "nothing overlaps",
    "streaming": "overlapped",
    "planned": "fewer bytes",
    "compressed": "smaller bytes",
    PAGED_HITS: "overlapped, and some stay",
    FETCHED_AHEAD: "overlapped",
}


def _step(name: str) -> str:
    return next((kind for start, kind in _STEPS.items() if name.startswith(start)), name)


def _bar(row: Row, kind: str) -> ValueBar:
    assert row.timing is not None
    return ValueBar(row.name, row.timing.median, kind, row.timing.fastest, row.timing.slowest, row.bound)


def markdown(report: Report) -> str:
    """The whole report as Markdown tables."""
    lines = [", ".join(f"{name} {value}" for name, value in report.machine.items()), ""]
    lines += _table(("link", "GB/s"), [(name, f"{rate / 1e9:.1f}") for name, rate in report.link.items()])
    lines += _table([column.replace("\n", " ") for column in COLUMNS], [row_cells(row) for row in report.rows])
    if (change := link_change(report)) > _CHANGE:
        lines += [f"The link's rate changed by {100 * change:.0f} % between rows: others use it too. Run again.", ""]
    notes = [f"* {row.name}, {row.workload}: {row.note}" for row in report.rows if row.note]
    lines += [*notes, ""] if notes else []
    lines += _table(("to reach", "wanted", "measured", "", "max abs diff", "rows"), table(verdicts(report)))
    lines += _table(("ratio", ""), [(name, f"{value:.3f}") for name, value in report.ratios.items()])
    return "\n".join(lines)


_CHANGE = 0.03


def link_change(report: Report) -> float:
    """How far the link's rates lie apart that were measured during the run, as a share of the largest."""
    rates = [rate for name, rate in report.link.items() if name.startswith("to device, pinned, 1024 MiB")]
    return 1 - min(rates) / max(rates) if rates else 0.0


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    head = [f"| {' | '.join(columns)} |", f"| {' | '.join('---' for _ in columns)} |"]
    return [*head, *(f"| {' | '.join(row)} |" for row in rows), ""]
