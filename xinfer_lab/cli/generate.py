"""`xinfer-lab generate`: continue a prompt, with tokens shown as they come."""

from __future__ import annotations

import functools
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import typer

from xinfer_lab.cli.devices import DeviceChoice
from xinfer_lab.cli.faults import CommandError
from xinfer_lab.cli.paging import NO_PAGING, Paging
from xinfer_lab.cli.prompts import check_tokens, encode_chat, encode_prompt, open_tokenizer, parse_tokens
from xinfer_lab.cli.residency import Residency, plan_name
from xinfer_lab.cli.runs import note_pool
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.qwen2.sampling import greedy, sample
from xinfer_lab.qwen2.synthetic import is_made_up
from xinfer_lab.qwen2.tokenizer import Tokenizer
from xinfer_lab.residency.generate import Chooser
from xinfer_lab.residency.generate import generate as tokens_of
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.plan import GroupPlan

__all__ = ["Sampling", "generate"]

CHUNK = 512
"""Prompt tokens of one forward pass: activations and workspace are sized by it."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the next token is chosen: the most likely one at ``temperature`` 0, else drawn. Raises `CommandError`."""

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise CommandError(f"--temperature is 0 (the most likely token) or more, not {self.temperature:g}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise CommandError(f"--top-p is greater than 0 and at most 1, not {self.top_p:g}")
        if self.temperature == 0 and (self.top_k, self.top_p) != (None, None):
            raise CommandError("--top-k and --top-p need a --temperature above 0; at 0 the most likely token is taken")

    def chooser(self) -> Chooser:
        """Chooses token ids [B] from host logits [B, V]. Raises `CommandError` where the logits hold NaN."""
        choose = greedy
        if self.temperature > 0:
            generator = torch.Generator().manual_seed(self.seed)
            choose = functools.partial(
                sample, temperature=self.temperature, generator=generator, top_k=self.top_k, top_p=self.top_p
            )

        def checked(logits: torch.Tensor) -> torch.Tensor:
            try:
                return choose(logits)
            except ValueError as error:
                raise CommandError(f"{error}; xinfer-lab parity says from which layer on it is so, and why") from None

        return checked


class _Printer:
    """Shows each token at once: as text where there is a tokenizer, else as its id."""

    def __init__(self, tokenizer: Tokenizer | None) -> None:
        self._text = tokenizer.stream() if tokenizer is not None else None
        self._count = 0
        self._plain = not sys.stdout.isatty()

    def show(self, token: int) -> None:
        """Write what ``token`` adds, and flush."""
        if self._text is None:
            self._write(f"{' ' if self._count else ''}{token}")
        else:
            self._write(self._text.add(token))
        self._count += 1

    def end(self) -> None:
        """Write what remains, and end the line."""
        self._write((self._text.end() if self._text is not None else "") + "\n")

    def _write(self, text: str) -> None:
        if not self._plain:
            # A model may say anything, escape sequences too; a terminal must not obey them.
            text = "".join(
                char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text
            )
        sys.stdout.write(text)
        sys.stdout.flush()


def generate(
    model: Path,
    choice: DeviceChoice,
    sampling: Sampling,
    *,
    pool: int | None,
    max_new_tokens: int,
    prompt: str | None,
    tokens: str | None,
    context: int | None = None,
    memory: int | None = None,
    host_memory: str = "pinned",
    paging: Paging = NO_PAGING,
    chat: bool = False,
    engine: Path | None = None,
) -> int:
    """Generate from ``prompt`` (text; with ``chat`` a message, put into the chat template) or ``tokens`` (ids, shown as
    ids).

    ``pool`` None: everything resident, or, with ``memory`` bytes, what they have room for; the rest streams.
    ``paging``: what is in pages.
    """
    residency = Residency.chosen(pool=pool, memory=memory, host_memory=host_memory, paging=paging, engine=engine)
    with Checkpoint.open(model) as checkpoint:
        config = checkpoint.config
        residency.check(checkpoint)
        tokenizer = None
        if chat and prompt is None:
            raise CommandError("--chat puts a message into the chat template; give it with --prompt TEXT")
        if prompt is not None:
            tokenizer = open_tokenizer(checkpoint.path)
            ids = (encode_chat if chat else encode_prompt)(tokenizer, prompt, config.vocab_size)
        elif tokens is not None:
            ids = check_tokens(parse_tokens(tokens), config.vocab_size)
        else:
            raise CommandError("there is nothing to start from; give --prompt TEXT or --tokens 1,2,3")
        needed = len(ids) + max_new_tokens - 1
        if context is not None and context < needed:
            raise CommandError(
                f"{len(ids)} prompt tokens and {max_new_tokens} new ones need a --context of {needed} or more "
                f"(the last new token is not read again)"
            )
        chunk, room = min(CHUNK, len(ids)), context or needed
        if tokenizer is not None and is_made_up(checkpoint.path):
            typer.echo("This model's weights are made up, so what it says means nothing.", err=True)
        note_pool(pool, err=True)
        budget = residency.explained(config, memory, context=room, chunk=chunk, cards=choice.nodes)
        with budget, choice.open(memory=memory, check=False) as device:
            loaded = residency.load(
                checkpoint, device, context=room, chunk=chunk, on_plan=functools.partial(_say, memory)
            )
            with loaded:
                count = _generate(
                    loaded, torch.tensor([ids], device="cpu"), max_new_tokens, sampling, _Printer(tokenizer)
                )
                pinned = format_bytes(device.pinned_bytes)
            peak = format_bytes(max(memory.use().peak for memory in device.memories))
        several = choice.nodes > 1
        fullest, cards = (" of the fullest card", f"{choice.nodes} cards of ") if several else ("", "")
        said = f"peak device memory{fullest} {peak}, {pinned} of host memory pinned, on {cards}{device.name}"
        typer.echo(f"{count}; {said}", err=True)
        if residency.engine is not None:
            typer.echo(residency.engine.told(), err=True)
    return 0


def _say(memory: int | None, plan: GroupPlan) -> None:
    typer.echo(f"Within {format_bytes(memory or 0)}: {plan_name(plan)}", err=True)


def _generate(model: QwenModel, prompt: torch.Tensor, most: int, sampling: Sampling, printer: _Printer) -> str:
    start, count = time.perf_counter(), 0
    try:
        for token in tokens_of(model, prompt, most, sampling.chooser()):
            printer.show(int(token))
            count += 1
    finally:
        printer.end()
    seconds = time.perf_counter() - start
    stopped = " (the model ended the text)" if count < most else ""
    return f"{count} {'token' if count == 1 else 'tokens'} in {seconds:.2f} s{stopped}"
