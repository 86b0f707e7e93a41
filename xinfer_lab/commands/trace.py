"""`xinfer-lab trace`: when everything happened in a streaming run, as a file for the Perfetto viewer."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from xinfer_lab.commands.budget import explained
from xinfer_lab.commands.devices import DeviceChoice
from xinfer_lab.commands.output import output_file
from xinfer_lab.commands.paging import NO_PAGING, Paging
from xinfer_lab.commands.parity import tokens_of
from xinfer_lab.commands.runs import Plan, describe_model, note_pool, pool_name, run_on
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.residency.factories import MIN_POOL, effective_pool
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
) -> int:
    """Run, write the passes (not the loading) to ``out``, and say in words what it shows. 1 if a hazard was found.

    ``pool`` None: two slots, unless ``paging`` has the layers, or the experts of a model whose layers stay.
    """
    there = out.is_file()
    if pool is None and paging.layers is None and paging.experts is None:
        pool = MIN_POOL
    with Checkpoint.open(model) as checkpoint, output_file(out) as made:
        layers = checkpoint.config.num_hidden_layers
        if pool is not None:
            effective_pool(pool, layers)
        ids = tokens_of(checkpoint, prompt, tokens)
        plan = Plan(checkpoint=checkpoint, tokens=ids, passes=steps, paging=paging)
        paging.check(checkpoint)
        kind, name = paging.kind, paging.name
        if pool is not None:
            kind, name = "streaming", pool_name(pool, layers)
        budget = explained(checkpoint.config, memory, context=plan.room, chunk=len(ids), pool=pool)
        # Checks would add their own time to what a GPU is measured to take.
        with budget if paging == NO_PAGING else paging.explained(memory):
            device = choice.open(memory=memory, measure=True, check=not choice.on_cuda)
            done = run_on(kind, device, plan.opener(kind, pool or 0), plan)
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
