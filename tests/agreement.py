"""How a model of ours is held against transformers' own: saved by transformers, read by both, compared pass by pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from xinfer_lab.qwen2 import Checkpoint, ReferenceModel, greedy

STEPS = 5
LIMIT = {torch.float32: 1e-5, torch.float16: 8e-3, torch.bfloat16: 6e-2}
"""Largest difference over largest logit. In fp16 and bf16 both sides are about this far from fp32."""


@dataclass(frozen=True, eq=False)
class Case:
    """A model of transformers and how it is saved."""

    name: str
    dtype: torch.dtype = torch.float32
    batch: int = 1
    shard_bytes: str = "10GB"
    keys: dict = field(default_factory=dict)

    def __str__(self):
        return self.name


def saved_and_read(directory: Path, case: Case, kind: Any, config: Any, capacity: int, **how: Any):
    """(transformers' model of the class ``kind`` as it reads its checkpoint back, ours with its cache empty)."""
    source = kind(config)
    with torch.no_grad():
        for name, parameter in source.named_parameters():
            parameter.normal_(mean=1.0 if "norm" in name else 0.0, std=0.2)
    source.to(case.dtype).save_pretrained(directory, max_shard_size=case.shard_bytes)
    theirs = kind.from_pretrained(directory, dtype=case.dtype, **how).eval()
    with Checkpoint.open(directory) as checkpoint:
        files = {checkpoint.entry(name).file for name in checkpoint.names()}
        assert (len(files) > 1) == (case.shard_bytes != "10GB"), "the case is sharded as it says"
        return theirs, ReferenceModel(checkpoint, capacity=capacity, batch=case.batch)


def tokens_of(case: Case, count: int) -> torch.Tensor:
    """Token ids [batch, count], the same each time."""
    return torch.randint(0, 160, (case.batch, count), generator=torch.Generator().manual_seed(1))


def assert_close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    difference = (ours.float() - theirs.float()).abs().max() / theirs.float().abs().max()
    assert ours.dtype == theirs.dtype
    assert difference <= LIMIT[ours.dtype], f"relative difference {difference:.2e}"


def assert_every_position_agrees(theirs, ours, tokens: torch.Tensor, chunks: list[int]) -> None:
    """Ours is given ``tokens`` in ``chunks``, transformers' all at once."""
    ours.reset()
    logits = torch.cat([ours.forward(part, positions=part.shape[1]) for part in tokens.split(chunks, dim=1)], dim=1)
    with torch.inference_mode():
        assert_close(logits, theirs(tokens).logits)


def assert_decode_agrees(theirs, ours, prompt: torch.Tensor) -> None:
    """A prefill and then one token at a time; in fp32 the tokens that are chosen are the same, too."""
    ours.reset()
    tokens = prompt
    for _ in range(STEPS):
        logits = ours.forward(tokens[:, ours.position :])[:, -1]
        with torch.inference_mode():
            expected = theirs(tokens, use_cache=False).logits[:, -1]
        assert_close(logits, expected)
        chosen = expected.argmax(-1)
        if expected.dtype == torch.float32:
            assert torch.equal(greedy(logits), chosen)
        tokens = torch.cat([tokens, chosen.unsqueeze(1)], dim=1)
    made = tokens[:, prompt.shape[1] :]
    assert made.unique().numel() > 1, "a model that repeats one token would hide a wrong position"


def assert_same_generation(theirs, ours, prompt: torch.Tensor, **how: Any) -> None:
    """Greedy generation by transformers' own ``generate`` gives the same tokens."""
    ours.reset()
    expected = theirs.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=STEPS, do_sample=False, pad_token_id=0, **how
    )
    seen = prompt
    for _ in range(STEPS):
        new = seen[:, ours.position :]
        seen = torch.cat([seen, greedy(ours.forward(new)[:, -1]).unsqueeze(1)], dim=1)
    assert torch.equal(seen, expected)
