"""`xinfer-lab engine`: whose the parts of an engine are, and one page that shows what it did."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
import typer

from xinfer_lab.cli.devices import DeviceChoice
from xinfer_lab.cli.output import output_file
from xinfer_lab.cli.parity import compare, tokens_of
from xinfer_lab.cli.prompts import open_tokenizer
from xinfer_lab.cli.residency import Residency
from xinfer_lab.cli.runs import Finished, RunSpec, describe_model, moved_bytes, run_on
from xinfer_lab.cli.screen import print_table
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.engine.assemble import Engine
from xinfer_lab.engine.page import EnginePage
from xinfer_lab.engine.picture import WORDS, engine_picture, summary
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.views.figures import excerpt
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.slots import slots_of
from xinfer_lab.views.timeline_svg import timeline_svg

__all__ = ["page", "show"]


def show(folder: Path, picture: Path | None = None) -> int:
    """Print the engine's parts as a table; write them as an SVG ``picture`` too. 1 if a part of theirs is broken."""
    engine = Engine(folder)
    rows = [
        [found.part.name, f"Lab {found.lab.removeprefix('lab')}", WORDS[found.status], found.part.does]
        for found in engine.parts.values()
    ]
    print_table(["part", "", "whose", "what it does"], rows, left=4, spare=["what it does"])
    broken = [found.note for found in engine.parts.values() if found.status in ("broken", "changed")]
    for note in broken:
        typer.echo(note)
    typer.echo(summary(engine.parts))
    if picture is not None:
        with output_file(picture) as made:
            engine_picture(engine.parts, title=f"The engine in {folder}").save(made)
        typer.echo(f"{picture}: the same as a picture")
    return 1 if any(found.status == "broken" for found in engine.parts.values()) else 0


def page(
    folder: Path,
    model: Path,
    choice: DeviceChoice,
    out: Path,
    *,
    pool: int | None,
    steps: int,
    prompt: str | None,
    tokens: str | None,
) -> int:
    """Run ``model`` resident and by the engine, and write one page about it. 0 if all bytes are equal and no hazard."""
    residency = Residency.chosen(pool=pool, memory=None, engine=folder)
    assert residency.engine is not None
    with Checkpoint.open(model) as checkpoint, output_file(out) as made:
        residency.check(checkpoint)
        plan = RunSpec(checkpoint=checkpoint, tokens=tokens_of(checkpoint, prompt, tokens), passes=steps)
        runs = {
            kind: run_on(kind, choice.open(measure=True), plan.opener(one), plan)
            for kind, one in (("resident", residency.as_resident()), ("streaming", residency))
        }
        verdict = compare(runs["resident"], runs["streaming"], "streaming")
        streamed = runs["streaming"]
        written = EnginePage(
            title=f"{model.name}, streamed by my own engine",
            promise="Its layers wait outside of the device and pass through a few slots, by code that I wrote. The "
            "result is that of the model resident in memory, byte for byte.",
            parity=verdict.line,
            facts=_facts(checkpoint, residency.engine, runs, choice.open().name),
            said=_said(model, plan, streamed) if prompt is not None else "",
            pictures=[_timeline(streamed), engine_picture(residency.engine.parts)],
        )
        made.write_text(written.html(), encoding="utf-8", newline="\n")
    typer.echo(f"{verdict.line}\n{residency.engine.told()}\n{out}: open it in a browser, or give it to a friend")
    for report in streamed.reports:
        typer.echo(f"\n{report}")
    return 0 if verdict.equal and not streamed.reports else 1


def _facts(checkpoint: Checkpoint, engine: Engine, runs: dict[str, Finished], device: str) -> list[tuple[str, str]]:
    streamed = runs["streaming"]
    return [
        ("model", describe_model(checkpoint.config)),
        ("on", device),
        ("device memory, resident", format_bytes(runs["resident"].run.memory.peak)),
        ("device memory, streamed", format_bytes(streamed.run.memory.peak)),
        ("moved over the link", format_bytes(moved_bytes(streamed.stream, streamed.run.first_record))),
        ("hazards", str(len(streamed.run.hazards))),
        ("parts", engine.told()),
    ]


def _timeline(finished: Finished) -> Picture:
    assert finished.passes is not None
    ends = [event.end for event in finished.passes.events if event.kind in ("host_read", "host_wait")]
    timeline = replace(excerpt(finished.passes, 0.0, ends[min(1, len(ends) - 1)]) if ends else finished.passes)
    return timeline_svg(timeline, title="The first passes", slot_of=slots_of(finished.stream))


def _said(model: Path, plan: RunSpec, finished: Finished) -> str:
    tokenizer = open_tokenizer(model)
    made = torch.cat([tokens.flatten() for tokens in finished.run.tokens]).tolist()
    return tokenizer.decode(made)
