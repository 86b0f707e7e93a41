"""`xinfer-lab trace`: when everything happened in a streaming run, as a file for the Perfetto viewer."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from xinfer_lab.cli.devices import DeviceChoice
from xinfer_lab.cli.output import output_file
from xinfer_lab.cli.paging import NO_PAGING, Paging
from xinfer_lab.cli.parity import tokens_of
from xinfer_lab.cli.residency import Residency
from xinfer_lab.cli.runs import RunSpec, describe_model, note_pool, run_on
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.residency.factories import MIN_POOL
from xinfer_lab.views.perfetto import perfetto_json
from xinfer_lab.views.timeline_words import headline

__all__ = ["trace"]


def trace(
    model: Path,
    choice: DeviceChoice,
    out: Path,
    *,
    pool: int | None = None,
    steps: int,
    prompt: str | None = None,
    tokens: str | None = None,
    memory: int | None = None,
    paging: Paging = NO_PAGING,
    engine: Path | None = None,
) -> int:
    """Run, write the passes (not the loading) to ``out``, and say in words what it shows. 1 if a hazard was found.

    ``pool`` None: two slots, unless ``paging`` has the layers, or the experts of a model whose layers stay.
    """
    there = out.is_file()
    if pool is None and paging.layers is None and paging.experts is None:
        pool = MIN_POOL
    residency = Residency.chosen(pool=pool, memory=memory, paging=paging, engine=engine)
    with Checkpoint.open(model) as checkpoint, output_file(out) as made:
        residency.check(checkpoint)
        config, ids = checkpoint.config, tokens_of(checkpoint, prompt, tokens)
        plan = RunSpec(checkpoint=checkpoint, tokens=ids, passes=steps)
        # Checks would add their own time to what is measured.
        with residency.explained(config, memory, context=plan.room, chunk=len(ids), cards=choice.nodes):
            device = choice.open(memory=memory, measure=True, check=not choice.measured)
            done = run_on(residency.kind, device, plan.opener(residency), plan)
        name = residency.name(
            config, lambda: choice.open(memory=memory), context=plan.room, chunk=len(ids), cards=choice.nodes
        )
        assert done.passes is not None
        data = perfetto_json(done.passes, done.stream)
        made.write_text(json.dumps(data, allow_nan=False), encoding="utf-8", newline="\n")
    typer.echo(f"{describe_model(checkpoint.config)}; {name}; {steps} passes")
    note_pool(pool)
    typer.echo(headline(done.passes))
    again = " (replaced)" if there else ""
    typer.echo(f"{out}{again}: open it at https://ui.perfetto.dev, which reads it in the browser and uploads nothing")
    for report in done.reports:
        typer.echo(f"\n{report}")
    return 1 if done.reports else 0
