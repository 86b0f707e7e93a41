"""Commands on sizes alone: simulate, plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xinfer_lab.cli.options import (
    Codec,
    EvictBy,
    Page,
    PagedCache,
    Size,
    Steps,
    StreamLayers,
    memory_of,
)

Gpus = Annotated[
    int,
    typer.Option(min=1, metavar="G", help="Cards, each with its own memory and link: layer i lives on card i mod G."),
]

__all__ = ["plan", "simulate"]


def simulate(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="0.5b, 1.5b, 7b, 14b, 32b, 72b, or a directory with config.json.")
    ],
    gpu: Annotated[str, typer.Option(metavar="NAME", help="rtx4090, h200 or laptop.")] = "rtx4090",
    stream_layers: StreamLayers = 2,
    tokens: Annotated[int, typer.Option(min=1, metavar="T", help="Tokens of the prompt.")] = 512,
    steps: Steps = 4,
    vram: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Device memory budget; by default the GPU's own memory.")
    ] = None,
    gpus: Gpus = 1,
) -> int:
    """Say where the time of a model on a given GPU would go, from sizes alone; nothing is loaded or computed."""
    memory = memory_of(vram)
    from xinfer_lab.cli import simulate as command

    return command.simulate(model, gpu=gpu, pool=stream_layers, tokens=tokens, steps=steps, memory=memory, gpus=gpus)


def plan(
    model: Size,
    vram: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Device memory budget; by default the GPU's own memory.")
    ] = None,
    gpu: Annotated[str, typer.Option(metavar="NAME", help="rtx4090, h200 or laptop.")] = "rtx4090",
    context: Annotated[int, typer.Option(min=2, metavar="TOKENS", help="Tokens that the cache has room for.")] = 4096,
    batch: Annotated[int, typer.Option(min=1, max=2**20, help="Sequences at a time.")] = 1,
    chunk: Annotated[int | None, typer.Option(min=1, metavar="TOKENS", help="Most tokens of one pass.")] = 512,
    compress: Annotated[Codec, typer.Option(help="Keep and move layers in a lossless coded form.")] = Codec.NONE,
    paged_cache: PagedCache = None,
    page: Page = None,
    policy: EvictBy = None,
    picture: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Draw what holds the memory.")] = None,
    gpus: Gpus = 1,
) -> int:
    """Say what stays in device memory within a budget, what streams, and how long a pass takes.

    Computed from sizes alone, on the virtual clock; nothing is loaded.
    """
    memory = memory_of(vram)
    from xinfer_lab.cli import plan as command
    from xinfer_lab.cli.paging import paging_of

    return command.plan(
        model, memory=memory, gpu=gpu, context=context, batch=batch, chunk=chunk, compress=compress.value,
        picture=picture, paging=paging_of(None, paged_cache, page, policy, offered="--paged-cache"),
        gpus=gpus,
    )  # fmt: skip
