"""Commands on a student's own engine: show, page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xinfer_lab.cli.options import Model, OnDevice, Prompt, Steps, Tokens, one_of

__all__ = ["page", "show"]

FOLDER = Path("my_engine")
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of parts: my_engine, beside labs/.")]


def show(
    folder: Folder = FOLDER,
    picture: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Draw them too.")] = None,
) -> int:
    """Show which parts of your engine are yours, and which the course lends.

    Exit status 1: a part of yours cannot be used.
    """
    from xinfer_lab.cli import engine as command

    return command.show(folder, picture)


def page(
    model: Model,
    folder: Annotated[Path, typer.Option("--engine", metavar="DIR", help="The folder of parts.")] = Path(
        "labs/my_engine"
    ),
    out: Annotated[Path, typer.Option(metavar="FILE.html", help="The page.")] = Path("my-engine.html"),
    stream_layers: Annotated[
        int | None, typer.Option(metavar="N", help="Slots to stream through; 2 by default.")
    ] = None,
    steps: Steps = 16,
    device: OnDevice = "auto",
    prompt: Prompt = None,
    tokens: Tokens = None,
) -> int:
    """Write one page to show a friend: model and memory, the text it made, the timeline, whose parts ran, diff 0.

    The page is complete in itself. Exit status 1: bytes differ, or a fence is missing.
    """
    one_of(prompt, tokens)
    from xinfer_lab.cli import engine as command
    from xinfer_lab.cli.devices import DeviceChoice

    return command.page(
        folder, model, DeviceChoice(kind=device), out, pool=stream_layers, steps=steps, prompt=prompt, tokens=tokens
    )
