"""The command `experts`, on a checkpoint with experts."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from xinfer_lab.cli.options import Gpu, Model, OnDevice, Page, Prompt, Schedule, Steps, Tokens, one_of

__all__ = ["experts"]


class Eviction(StrEnum):
    """Eviction policies that need not know the future."""

    LRU = "lru"
    CLOCK = "clock"


def experts(
    model: Model,
    pool: Annotated[
        str, typer.Option(metavar="SIZE", help="Device memory for a page pool of experts; room for at least two.")
    ],
    steps: Steps = 8,
    device: OnDevice = "auto",
    schedule: Schedule = None,
    gpu: Gpu = None,
    prompt: Prompt = None,
    tokens: Tokens = None,
    page: Page = None,
    policy: Annotated[Eviction, typer.Option(help="Which expert leaves when a frame is needed.")] = Eviction.LRU,
) -> int:
    """Check that experts in a page pool give the same bytes as resident ones, and show what paging costs.

    Runs twice: experts on demand, then fetched ahead on a guess at the next layer's choice. Exit status 0: all bytes
    are equal and no fault was found; 1 otherwise.
    """
    one_of(prompt, tokens)
    from xinfer_lab.cli import experts as command
    from xinfer_lab.cli.devices import DeviceChoice

    return command.experts(
        model, DeviceChoice(kind=device, schedule=schedule, gpu=gpu), size=pool, page=page, policy=policy.value,
        steps=steps, prompt=prompt, tokens=tokens,
    )  # fmt: skip
