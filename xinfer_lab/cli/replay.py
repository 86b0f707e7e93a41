"""`xinfer-lab replay`: a student's recorded command stream again, in several orders.

Shows its hazards and its picture, and runs none of the student's code.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from xinfer_lab.cli.faults import CommandError
from xinfer_lab.cli.output import output_file
from xinfer_lab.cli.screen import print_table
from xinfer_lab.device.errors import StreamError, format_bytes
from xinfer_lab.grading.piece import cases_from_data
from xinfer_lab.grading.programs.evidence import Evidence
from xinfer_lab.grading.programs.rerun import ORDERS, read_programs, rerun, timeline_of
from xinfer_lab.views.perfetto import perfetto_json
from xinfer_lab.views.timeline_svg import timeline_svg

__all__ = ["replay"]


def replay(folder: Path, *, case: int | None) -> int:
    """Replay the recording in ``folder`` (cases.json, recording.json), all its cases or the one numbered ``case``.

    Writes for each case a picture and a trace for Perfetto beside them. 1 if a hazard or a state fault was found.
    Raises `CommandError` for anything but a recording of a queue program.
    """
    data = _load(folder / "recording.json")
    if not isinstance(data, dict) or not isinstance(data.get("piece"), str):
        raise CommandError(f"{folder / 'recording.json'} is not a recording: it names no piece")
    try:
        cases = cases_from_data(_load(folder / "cases.json"))
        found = list(read_programs(data["piece"], cases, data))
    except (ValueError, KeyError, StreamError) as error:
        raise CommandError(f"{folder} cannot be replayed: {error}") from None
    if case is not None and not 1 <= case <= len(found):
        raise CommandError(f"there is no case {case}: the recording has {len(found)}")
    faults = 0
    for number, (asked, evidence) in enumerate(found, 1):
        if case in (None, number):
            typer.echo(f"{data['piece']}, case {number} of {len(found)}: {asked.label}")
            faults += _show(evidence, folder, number)
    return 1 if faults else 0


def _show(evidence: Evidence, folder: Path, number: int) -> int:
    if evidence.raised is not None:
        broke = evidence.raised
        typer.echo(
            f"The answer raised {broke.type}: {broke.message} (raised by {broke.by})"
            + (f" ({broke.line})" if broke.line else "")
        )
    if not len(evidence.stream):
        typer.echo("It issued no commands.\n")
        return 0
    rows = []
    for order in ORDERS:
        done = rerun(evidence, order)
        rows.append([order, done.words, "" if done.peak is None else format_bytes(done.peak)])
    print_table(["order", "the replay gives", "peak memory"], rows, left=2)
    findings = evidence.findings
    count = len(findings.hazards) + len(findings.state_faults)
    typer.echo(
        f"{len(evidence.stream)} commands, {len(findings.hazards)} hazards, {len(findings.state_faults)} state faults"
    )
    for fault in (findings.hazards or findings.state_faults)[:1]:
        typer.echo(f"\n{fault.report()}")
    timeline = timeline_of(evidence)
    picture = timeline_svg(timeline, title=f"case {number}, as it was recorded", hazards=findings.hazards[:1])
    contents: dict[str, str] = {
        f"timeline-{number}.svg": picture.svg,
        f"trace-{number}.json": json.dumps(perfetto_json(timeline, evidence.stream), allow_nan=False),
    }
    for name, content in contents.items():
        with output_file(folder / name) as made:
            made.write_text(content, encoding="utf-8", newline="\n")
    typer.echo(
        f"Picture and trace (for https://ui.perfetto.dev): {', '.join(str(folder / name) for name in contents)}\n"
    )
    return count


def _load(path: Path) -> Any:
    def refuse(text: str) -> object:
        raise ValueError(f"{path.name} holds {text}, which is not a JSON number")

    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path} cannot be read: {error}") from None
