"""`xinfer-lab parity`: the same tokens, resident and streaming, compared byte for byte."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from xinfer_lab.commands.budget import explained
from xinfer_lab.commands.devices import DeviceChoice
from xinfer_lab.commands.paging import NO_PAGING, Paging
from xinfer_lab.commands.prompts import any_tokens, check_tokens, encode_prompt, open_tokenizer, parse_tokens
from xinfer_lab.commands.runs import (
    Finished,
    Plan,
    describe_model,
    note_pool,
    plan_name,
    pool_name,
    print_runs,
    run_on,
)
from xinfer_lab.device.errors import CudaUnavailable, DeviceError, OutOfDeviceMemory
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.residency.errors import LayerOrderError
from xinfer_lab.residency.factories import effective_pool
from xinfer_lab.residency.parity import compare_logits, first_difference, parity_line

__all__ = ["Comparison", "compare", "parity", "tokens_of"]


@dataclass(frozen=True)
class Comparison:
    """Whether the bytes of all logits are equal, the largest difference, and the line that says so."""

    equal: bool
    largest: float
    line: str


def compare(resident: Finished, other: Finished, name: str) -> Comparison:
    """``other`` against ``resident``. Only equal bytes, free of NaN, are called 0."""
    equal, largest = compare_logits(resident.run.logits, other.run.logits)
    return Comparison(equal, largest, parity_line(largest, name))


def tokens_of(checkpoint: Checkpoint, prompt: str | None, tokens: str | None) -> list[int]:
    """The token ids that the options ask for. Raises `CommandError`."""
    vocab = checkpoint.config.vocab_size
    if tokens is not None:
        return check_tokens(parse_tokens(tokens), vocab)
    if prompt is not None:
        return check_tokens(encode_prompt(open_tokenizer(checkpoint.path), prompt), vocab)
    return any_tokens(vocab)


def parity(
    model: Path,
    choice: DeviceChoice,
    *,
    pool: int | None,
    steps: int,
    prompt: str | None = None,
    tokens: str | None = None,
    context: int | None = None,
    host_memory: str = "pinned",
    serial: bool = False,
    memory: int | None = None,
    paging: Paging = NO_PAGING,
) -> int:
    """Compare, print the table and the parity line. 0 if all bytes are equal and nothing was found, else 1.

    ``pool`` None: what ``memory`` bytes have room for stays, the rest streams; two slots without a budget. Layers in
    ``paging`` are compared instead; a cache in pages is the one of all runs but the resident one.
    """
    if pool is None and memory is None and paging.layers is None:
        pool = 2
    with Checkpoint.open(model) as checkpoint:
        layers = checkpoint.config.num_hidden_layers
        if pool is not None:
            effective_pool(pool, layers)
        plan = Plan(
            checkpoint=checkpoint, tokens=tokens_of(checkpoint, prompt, tokens), passes=steps, context=context,
            host_memory=host_memory, paging=paging,
        )  # fmt: skip
        try:
            return _compare_runs(plan, choice, pool, serial, memory)
        except (CudaUnavailable, OutOfDeviceMemory):
            raise
        except (DeviceError, LayerOrderError) as error:
            # The plan was sound, so it is the residency that asked for something that no device does.
            typer.echo(f"The run was stopped: {error}")
            return 1


def _compare_runs(plan: Plan, choice: DeviceChoice, pool: int | None, serial: bool, memory: int | None) -> int:
    layers = plan.checkpoint.config.num_hidden_layers
    if pool is not None:
        names = {"streaming": pool_name(pool, layers)}
    elif plan.paging.layers is not None:
        names = {"paged": plan.paging.name}
    else:
        with choice.open(memory=memory) as device:
            names = {"planned": plan_name(plan.fit(device))}
    if serial:
        names = {"serial": "serial, 1 slot", **names}
    # The streaming run first: if it does not fit the budget, that is known before anything else is loaded.
    others = {}
    for kind, name in reversed(names.items()):
        budget = explained(plan.checkpoint.config, memory, context=plan.room, chunk=len(plan.tokens), pool=pool)
        if plan.paging != NO_PAGING:
            budget = plan.paging.explained(memory)
        with budget:
            device = choice.open(memory=memory, measure=True)
            others[kind] = run_on(name, device, plan.opener(kind, pool or 0), plan)
    resident = run_on("resident", choice.open(measure=True), plan.opener("resident"), plan)
    runs = [resident, *(others[kind] for kind in names)]

    count = len(plan.tokens)
    typer.echo(f"{describe_model(plan.checkpoint.config)}; {plan.passes} passes, the first of {count} tokens")
    clock = "as measured with the checks on" if choice.on_cuda else "on the virtual clock"
    typer.echo(f"on {device.name}; times of the passes {clock}")
    note_pool(pool)
    print_runs(runs)
    for report in [report for item in runs for report in item.reports]:
        typer.echo(f"{report}\n")
    verdicts = {kind: compare(resident, others[kind], kind) for kind in names}
    for kind, verdict in verdicts.items():
        if not verdict.equal:
            typer.echo(f"{kind}: {_where(plan, choice, kind, pool or 0, resident, others[kind])}")
    for verdict in verdicts.values():
        typer.echo(verdict.line)
    sound = not any(item.reports for item in runs)
    if not sound and all(verdict.equal for verdict in verdicts.values()):
        typer.echo("The bytes are equal this time, but see the reports above: nothing orders these commands.")
    return 0 if sound and all(verdict.equal for verdict in verdicts.values()) else 1


def _where(plan: Plan, choice: DeviceChoice, kind: str, pool: int, resident: Finished, other: Finished) -> str:
    found = first_difference(plan.opener("resident"), plan.opener(kind, pool), choice.open, resident.run.tokens)
    if found is not None:
        return str(found)
    pairs = zip(resident.run.logits, other.run.logits, strict=True)
    step = next(step for step, (a, b) in enumerate(pairs) if not compare_logits([a], [b])[0])
    return f"first difference in the logits of step {step}; looked at layer by layer, the host's waits hide it"
