"""`xinfer-lab demo`: a small model streams through two slots, equals the resident run, and overlaps its copies."""

from __future__ import annotations

import tempfile
import textwrap
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import typer

from xinfer_lab.cli.layer_cost import layer_cost
from xinfer_lab.cli.make_checkpoint import weight_bytes
from xinfer_lab.cli.parity import compare
from xinfer_lab.cli.prompts import any_tokens
from xinfer_lab.cli.residency import Residency, pool_name
from xinfer_lab.cli.runs import Finished, RunSpec, describe_model, print_runs, run_on
from xinfer_lab.cli.screen import screen_width
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.qwen2.synthetic import SyntheticSpec, write_checkpoint
from xinfer_lab.views.figures import excerpt
from xinfer_lab.views.slots import slots_of
from xinfer_lab.views.timeline_text import timelines_text

__all__ = ["demo"]

SPEC = SyntheticSpec(layers=6, hidden=128, heads=8, kv_heads=2, intermediate=384)
POOL, TOKENS, PASSES = 2, 8, 4


def demo(keep: Path | None = None) -> int:
    """Show it; ``keep``: where to leave the checkpoint (None: nowhere). 0 if bytes are equal and nothing was found."""
    with ExitStack() as stack:
        if keep is None:
            keep = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="xinfer-lab-"))) / "model"
            where = "a temporary directory"
        else:
            where = str(keep)
        write_checkpoint(keep, SPEC)
        checkpoint = stack.enter_context(Checkpoint.open(keep))
        return _show(checkpoint, where)


def _show(checkpoint: Checkpoint, where: str) -> int:
    config = checkpoint.config
    layers = config.num_hidden_layers
    plan = RunSpec(checkpoint=checkpoint, tokens=any_tokens(config.vocab_size, TOKENS), passes=PASSES)
    _say(f"A made-up model in {where}: {describe_model(config)}, {format_bytes(weight_bytes(config))} of weights.")
    _say(
        f"It reads {TOKENS} tokens and makes {PASSES} more on an emulated GPU: once with all {layers} layers resident "
        f"in device memory, and once streaming them through {POOL} slots, where the copy queue fills one slot while "
        f"the direct queue computes with the other. Serial, for comparison, has one slot: upload, compute, upload, and "
        f"so on."
    )
    spec = lab_spec(config)
    names = {"resident": "resident", "serial": "serial, 1 slot", "streaming": pool_name(POOL, layers)}
    runs = {
        kind: run_on(name, EmulatedDevice(spec=spec), plan.opener(Residency(kind=kind, pool=POOL)), plan)
        for kind, name in names.items()
    }
    print_runs(list(runs.values()))
    _say(
        f"The first two passes, on the virtual clock of a GPU that uploads a layer in the time that it computes it for "
        f"{TOKENS} tokens. Reading the prompt hides most uploads; making one token has too little to compute for that, "
        f"and waits for the link.\n"
    )
    typer.echo(_picture(runs["serial"], runs["streaming"]))
    reports = [report for item in runs.values() for report in item.reports]
    for report in reports:
        typer.echo(f"\n{report}")
    hazards = sum(len(item.run.hazards) for item in runs.values())
    faults = f"\nstate faults: {len(reports) - hazards}" if len(reports) > hazards else ""
    verdict = compare(runs["resident"], runs["streaming"], "streaming")
    typer.echo(f"\nhazards: {hazards}{faults}\n{verdict.line}")
    return 0 if verdict.equal and not reports else 1


def lab_spec(config: Qwen2Config) -> GpuSpec:
    """A GPU on which a layer's upload takes as long as its computing in the first pass."""
    return GpuSpec.lab(1.0, layer_bytes=layer_layout(config).nbytes, layer_cost=layer_cost(config, TOKENS))


def _say(words: str) -> None:
    typer.echo(textwrap.fill(words.rstrip("\n"), min(80, screen_width())) + "\n" * words.endswith("\n"))


def _picture(serial: Finished, streaming: Finished) -> str:
    named = []
    for name, item in (("serial", serial), ("streaming", streaming)):
        assert item.passes is not None
        ends = [event.end for event in item.passes.events if event.kind == "host_read"]
        # The words above the picture say what clock this is.
        named.append((name, replace(excerpt(item.passes, 0.0, ends[1]), clock="")))
    return timelines_text(named, min(80, screen_width()), slot_of=[slots_of(serial.stream), slots_of(streaming.stream)])
