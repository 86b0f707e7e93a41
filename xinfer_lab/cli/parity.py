"""`xinfer-lab parity`: the same tokens, resident and streaming, compared byte for byte."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
import typer

from xinfer_lab.cli.devices import DeviceChoice
from xinfer_lab.cli.paging import NO_PAGING, Paging
from xinfer_lab.cli.prompts import any_tokens, check_tokens, encode_prompt, open_tokenizer, parse_tokens
from xinfer_lab.cli.residency import Residency
from xinfer_lab.cli.runs import (
    Finished,
    RunSpec,
    describe_model,
    note_pool,
    print_runs,
    run_on,
)
from xinfer_lab.device.errors import CudaUnavailable, DeviceError, OutOfDeviceMemory
from xinfer_lab.engine.loading import asked_by
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.qwen2.layout import tensor_name
from xinfer_lab.residency.errors import LayerOrderError
from xinfer_lab.residency.parity import (
    Difference,
    compare_logits,
    first_difference,
    first_not_finite,
    parity_line,
    same_bytes,
)

__all__ = ["Comparison", "compare", "parity", "tokens_of"]


@dataclass(frozen=True)
class Comparison:
    """Whether the bytes of all logits are equal numbers, the largest difference, and the line that says so.

    ``note``: where they are equal bytes, but not all of them finite, that it is so; else empty.
    """

    equal: bool
    largest: float
    line: str
    note: str = ""


def compare(resident: Finished, other: Finished, name: str) -> Comparison:
    """``other`` against ``resident``. Only equal bytes, free of NaN, are called 0."""
    equal, largest = compare_logits(resident.run.logits, other.run.logits)
    note = ""
    if not equal and same_bytes(resident.run.logits, other.run.logits):
        note = f"{name}: all bytes are equal to those of the resident run, but some are NaN or infinite in both"
    return Comparison(equal, largest, parity_line(largest, name), note)


def tokens_of(checkpoint: Checkpoint, prompt: str | None, tokens: str | None) -> list[int]:
    """The token ids that the options ask for. Raises `CommandError`."""
    vocab = checkpoint.config.vocab_size
    if tokens is not None:
        return check_tokens(parse_tokens(tokens), vocab)
    if prompt is not None:
        return encode_prompt(open_tokenizer(checkpoint.path), prompt, vocab)
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
    engine: Path | None = None,
) -> int:
    """Compare, print the table and the parity line. 0 if all bytes are equal and nothing was found, else 1.

    ``pool`` None: what ``memory`` bytes have room for stays, the rest streams; two slots without a budget. Layers in
    ``paging`` are compared instead; a cache in pages is the one of all runs but the resident one.
    """
    residency = Residency.chosen(
        pool=pool, memory=memory, host_memory=host_memory, paging=paging, engine=engine, otherwise="streaming"
    )
    with Checkpoint.open(model) as checkpoint:
        residency.check(checkpoint)
        plan = RunSpec(
            checkpoint=checkpoint, tokens=tokens_of(checkpoint, prompt, tokens), passes=steps, context=context
        )
        try:
            return _compare_runs(plan, choice, residency, serial, memory)
        except (CudaUnavailable, OutOfDeviceMemory):
            raise
        except (DeviceError, LayerOrderError) as error:
            # The plan was sound, so it is the residency that asked for something that no device does.
            typer.echo(f"The run was stopped: {error}{asked_by(error)}")
            return 1


def _compare_runs(plan: RunSpec, choice: DeviceChoice, residency: Residency, serial: bool, memory: int | None) -> int:
    config, chunk = plan.checkpoint.config, len(plan.tokens)
    kinds = {"serial": residency.as_serial(), residency.kind: residency} if serial else {residency.kind: residency}
    names = {
        kind: one.name(config, lambda: choice.open(memory=memory), context=plan.room, chunk=chunk, cards=choice.nodes)
        for kind, one in kinds.items()
    }
    # The streaming run first: if it does not fit the budget, that is known before anything else is loaded.
    others = {}
    for kind, one in reversed(kinds.items()):
        with residency.explained(config, memory, context=plan.room, chunk=chunk, cards=choice.nodes):
            device = choice.open(memory=memory, measure=True)
            others[kind] = run_on(names[kind], device, plan.opener(one), plan)
    resident = run_on("resident", choice.one_card().open(measure=True), plan.opener(residency.as_resident()), plan)
    runs = [resident, *(others[kind] for kind in kinds)]

    count = len(plan.tokens)
    typer.echo(f"{describe_model(plan.checkpoint.config)}; {plan.passes} passes, the first of {count} tokens")
    clock = "as measured with the checks on" if choice.measured else "on the virtual clock"
    cards = f"{choice.nodes} cards of " if choice.nodes > 1 else ""
    typer.echo(f"on {cards}{device.name}; times of the passes {clock}")
    note_pool(residency.pool)
    print_runs(runs)
    for report in [report for item in runs for report in item.reports]:
        typer.echo(f"{report}\n")
    sound = not any(item.reports for item in runs)
    verdicts = {kind: compare(resident, others[kind], kind) for kind in kinds}
    for kind, verdict in verdicts.items():
        if verdict.note:
            typer.echo(f"{verdict.note}{_since(plan, choice, resident, sound)}")
        elif not verdict.equal:
            typer.echo(f"{kind}: {_where(plan, choice, kinds[kind], resident, others[kind])}")
    for verdict in verdicts.values():
        typer.echo(verdict.line)
    if not sound and all(verdict.equal for verdict in verdicts.values()):
        typer.echo("The bytes are equal this time, but see the reports above: nothing orders these commands.")
    return 0 if sound and all(verdict.equal for verdict in verdicts.values()) else 1


def _where(plan: RunSpec, choice: DeviceChoice, residency: Residency, resident: Finished, other: Finished) -> str:
    whole, own = plan.opener(residency.as_resident()), plan.opener(residency)
    found = first_difference(whole, own, choice.open, resident.run.tokens)
    if found is not None:
        return str(found)
    pairs = zip(resident.run.logits, other.run.logits, strict=True)
    step = next(step for step, (a, b) in enumerate(pairs) if not same_bytes([a], [b]))
    return f"first difference in the logits of step {step}; looked at layer by layer, the host's waits hide it"


def _since(plan: RunSpec, choice: DeviceChoice, resident: Finished, sound: bool) -> str:
    """From where on the numbers of a run are not finite; and why, if only one reason is left."""
    found = first_not_finite(plan.opener(Residency()), choice.open, resident.run.tokens)
    if found is None:
        return "; looked at layer by layer, they are finite"
    where = f"layer {found.layer}" if found.layer is not None else "the logits"
    words = f", from {where} of step {found.step} on"
    if not sound:
        return words
    damaged = _not_finite_weights(plan.checkpoint, found)
    if damaged:
        return f"{words}: the checkpoint's {damaged} holds such a value"
    dtype = plan.checkpoint.config.dtype
    name, largest = str(dtype).removeprefix("torch."), torch.finfo(dtype).max
    advice = "; run the model in bfloat16 or float32" if dtype == torch.float16 else ""
    return f"{words}: what comes before it and its weights are finite, so it overflows {name} ({largest:g}){advice}"


def _not_finite_weights(checkpoint: Checkpoint, found: Difference) -> str | None:
    """A weight with a NaN or an infinity in it among those that were used up to there."""
    last = checkpoint.config.num_hidden_layers if found.layer is None else found.layer
    later = tuple(f"{tensor_name(layer, '')}" for layer in range(last + 1, checkpoint.config.num_hidden_layers))
    for name in checkpoint.names():
        if not name.startswith(later) and not checkpoint.tensor(name).isfinite().all():
            return name
    return None
