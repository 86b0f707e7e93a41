"""The tokens of a pass, checked where they come in: what a model refuses, and why."""

from __future__ import annotations

import torch

from xinfer_lab.residency.errors import RequestError

__all__ = ["checked_tokens"]


def checked_tokens(
    tokens: torch.Tensor, *, batch: int, vocabulary: int, chunk: int, position: int, context: int
) -> torch.Tensor:
    """``tokens`` [batch, T] (int64) in host memory, contiguous. Raises `RequestError` for those that cannot be run:

    of another shape or type, outside of the ``vocabulary``, more than ``chunk`` of each sequence, or more than a cache
    of ``context`` tokens takes after ``position``.
    """
    if tokens.dim() != 2 or tokens.shape[0] != batch or tokens.shape[1] < 1 or tokens.dtype != torch.int64:
        raise RequestError(
            f"tokens must be int64 of shape ({batch}, 1 or more), but are {tokens.dtype} of {tuple(tokens.shape)}"
        )
    low, high = int(tokens.min()), int(tokens.max())
    if low < 0 or high >= vocabulary:
        raise RequestError(f"token ids run from 0 to {vocabulary - 1}, but {low if low < 0 else high} is there")
    count = tokens.shape[1]
    if count > chunk:
        raise RequestError(f"one pass takes up to {chunk} tokens of each sequence, not {count}")
    if position + count > context:
        raise RequestError(
            f"the cache has room for {context} tokens: {position} are there and {count} are to come. Load the model "
            f"with a larger context, or begin a new sequence with reset()."
        )
    return tokens.to("cpu").contiguous()
