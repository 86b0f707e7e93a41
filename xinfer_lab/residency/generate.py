"""Generation: a prefill in chunks, then one token at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.model import QwenModel

__all__ = ["Chooser", "generate"]

Chooser = Callable[[torch.Tensor], torch.Tensor]
"""Chooses the next token ids [B] (int64) from logits [B, V]."""


def generate(
    model: QwenModel, prompt: torch.Tensor, max_new_tokens: int, choose: Chooser, *, stop_at_eos: bool = True
) -> Iterator[torch.Tensor]:
    """Yields the next token ids [B] one step at a time, for ``prompt`` [B, T] (int64), which follows what was run
    before.

    The prompt is run in chunks of ``model.chunk`` tokens; all passes are announced at once, so that a streaming source
    prefetches across them. Stops after ``max_new_tokens``, or once every sequence has met one of the model's end
    tokens. Raises `RequestError` if the cache cannot hold prompt and answer.
    """
    if max_new_tokens < 1:
        raise RequestError(f"at least 1 new token, not {max_new_tokens}")
    if prompt.dim() != 2 or prompt.shape[1] == 0:
        raise RequestError(f"a prompt has the shape (batch, 1 or more tokens), not {tuple(prompt.shape)}")
    if model.position + prompt.shape[1] + max_new_tokens - 1 > model.context:
        raise RequestError(
            f"{prompt.shape[1]} prompt tokens and {max_new_tokens} new ones need a context of "
            f"{model.position + prompt.shape[1] + max_new_tokens - 1}, but the model was loaded with {model.context}"
        )
    chunks = list(prompt.split(model.chunk, dim=1))
    model.begin(len(chunks) + max_new_tokens - 1)
    ends = torch.tensor(model.config.eos_token_ids, dtype=torch.int64, device="cpu")
    finished = torch.zeros(prompt.shape[0], dtype=torch.bool, device="cpu")
    logits = torch.empty(0, dtype=torch.float32, device="cpu")
    for chunk in chunks:
        logits = model.forward(chunk)
    for remaining in reversed(range(max_new_tokens)):
        ids = choose(logits[:, -1])
        yield ids
        finished |= torch.isin(ids, ends)
        if remaining == 0 or (stop_at_eos and bool(finished.all())):
            return
        logits = model.forward(ids[:, None])
