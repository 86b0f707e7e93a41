"""`xinfer-lab trace`: when everything happened in a streaming run, as a file for the Perfetto viewer."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from xinfer_lab.commands.budget import explained
from xinfer_lab.commands.devices import DeviceChoice
from xinfer_lab.commands.output import output_file
from xinfer_lab.commands.parity import tokens_of
from xinfer_lab.commands.runs import Plan, describe_model, note_pool, pool_name, run_on
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.residency.factories import effective_pool
from xinfer_lab.views.perfetto import perfetto_json
from xinfer_lab.views.timeline_words import headline

__all__ = ["trace"]


def trace(
    model: Path,
    choice: DeviceChoice,
    out: Path,
    *,
    pool: int,
    steps: int,
    prompt: str | None = None,
    tokens: str | None = None,
    memory: int | None = None,
) -> int:
    """Run, write the passes (not the loading) to ``out``, and say in words what it shows. 1 if a hazard was found."""
    there = out.is_file()
    with Checkpoint.open(model) as checkpoint, output_file(out) as made:
        layers = checkpoint.config.num_hidden_layers
        effective_pool(pool, layers)
        plan = Plan(checkpoint=checkpoint, tokens=tokens_of(checkpoint, prompt, tokens), passes=steps)
        # Checks would add their own time to what a GPU is measured to take.
        with explained(checkpoint.config, memory, context=plan.room, chunk=len(plan.tokens), pool=pool):
            device = choice.open(memory=memory, measure=True, check=not choice.on_cuda)
            done = run_on("streaming", device, plan.opener("streaming", pool), plan)
        assert done.passes is not None
        data = perfetto_json(done.passes, done.stream)
        made.write_text(json.dumps(data, allow_nan=False), encoding="utf-8", newline="\n")
    typer.echo(f"{describe_model(checkpoint.config)}; {pool_name(pool, layers)}; {steps} passes")
    note_pool(pool)
    typer.echo(headline(done.passes))
    again = " (replaced)" if there else ""
    typer.echo(f"{out}{again}: open it at https://ui.perfetto.dev, which reads it in the browser and uploads nothing")
    for report in done.reports:
        typer.echo(f"\n{report}")
    return 1 if done.reports else 0
