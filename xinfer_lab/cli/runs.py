"""One run of a model for a command: loads it with a progress bar, runs it greedily, makes a row of a table."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import typer

from xinfer_lab.cli.residency import Residency
from xinfer_lab.cli.screen import print_table
from xinfer_lab.device.device import Device
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.records import HOST_TO_DEVICE, Allocate, Copy
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.device.timeline import Timeline
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.factories import MIN_POOL
from xinfer_lab.residency.parity import Opener, Run, greedy_run
from xinfer_lab.views.scale import format_time

__all__ = [
    "Finished",
    "RunSpec",
    "describe_model",
    "moved_bytes",
    "note_pool",
    "print_runs",
    "run_on",
]


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """What to run: ``passes`` forward passes, the first with ``tokens``, each other one with the token chosen before.

    Raises `RequestError` for a plan that the model's cache or the ``context`` asked for cannot hold.
    """

    checkpoint: Checkpoint
    tokens: list[int]
    passes: int
    context: int | None = None

    def __post_init__(self) -> None:
        needed = len(self.tokens) + self.passes - 1
        if self.context is not None and self.context < needed:
            raise RequestError(
                f"{len(self.tokens)} tokens and {self.passes} passes need a context of {needed} (the last token chosen "
                f"is not read again), but {self.context} was asked for; raise --context or take fewer steps"
            )

    @property
    def room(self) -> int:
        """Tokens that the cache is made for."""
        return self.context or len(self.tokens) + self.passes - 1

    @property
    def prompt(self) -> torch.Tensor:
        """The first pass's tokens [1, T], int64."""
        return torch.tensor([self.tokens], device="cpu")

    def opener(self, residency: Residency) -> Opener:
        """Loads the model onto a device as ``residency`` says."""
        return lambda device: residency.load(self.checkpoint, device, context=self.room, chunk=len(self.tokens))


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A finished run: its name, its result, its stream, and the timeline of its passes."""

    name: str
    run: Run
    stream: CommandStream
    passes: Timeline | None

    @property
    def reports(self) -> tuple[str, ...]:
        """Full reports of its hazards and state faults."""
        return self.run.hazards + self.run.state_faults


def run_on(name: str, device: Device, load: Opener, plan: RunSpec) -> Finished:
    """Run ``plan`` on ``device`` and close it."""
    with device:
        run = greedy_run(load, device, plan.prompt, plan.passes)
    passes = run.timeline.since(run.first_record) if run.timeline is not None else None
    return Finished(name=name, run=run, stream=device.stream, passes=passes)


def describe_model(config: Qwen2Config) -> str:
    """A model's shape in a few words."""
    dtype = str(config.dtype).removeprefix("torch.")
    shape = f"{config.num_hidden_layers} layers, hidden {config.hidden_size}, {dtype}"
    if config.experts is None:
        return f"Qwen2, {shape}"
    experts = config.experts
    return f"Qwen2-MoE, {shape}, {experts.num_experts_per_tok} of {experts.num_experts} experts a token"


def note_pool(pool: int | None, *, err: bool = False) -> None:
    """Say so where fewer slots were asked for than streaming takes."""
    if pool is not None and pool < MIN_POOL:
        typer.echo(f"--stream-layers {pool}: {MIN_POOL} slots are used, the fewest that can overlap anything", err=err)


def moved_bytes(stream: CommandStream, first_record: int = 0) -> int:
    """Bytes that queues copied from host memory to the device, from record ``first_record`` on."""
    heaps = {record.buffer: record.heap for record in stream if isinstance(record, Allocate)}
    later = stream.records[first_record:]
    return sum(r.dst.size for r in later if isinstance(r, Copy) and heaps[r.src.buffer] in HOST_TO_DEVICE)


def print_runs(runs: list[Finished]) -> None:
    """A table with a row for each of ``runs``."""
    columns = ["", "peak device\nmemory", "layer\nuploads", "moved to\ndevice", "hazards", "state\nfaults"]
    timed = all(item.passes is not None for item in runs)
    rows = []
    for item in runs:
        row = [
            item.name,
            format_bytes(item.run.memory.peak),
            str(item.run.uploads),
            format_bytes(moved_bytes(item.stream, item.run.first_record)),
            str(len(item.run.hazards)),
            str(len(item.run.state_faults)),
        ]
        rows.append([*row, format_time(item.passes.duration)] if timed and item.passes is not None else row)
    print_table([*columns, "time"] if timed else columns, rows)
