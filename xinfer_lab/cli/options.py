"""Arguments and options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from xinfer_lab.cli.faults import CommandError
from xinfer_lab.cli.sizes import parse_size

__all__ = [
    "Cards",
    "Codec",
    "Context",
    "Dtype",
    "EngineFolder",
    "EvictBy",
    "Gpu",
    "Host",
    "HostMemory",
    "Model",
    "OnDevice",
    "Page",
    "Paged",
    "PagedCache",
    "PagedExperts",
    "Policy",
    "Prompt",
    "Schedule",
    "Size",
    "Steps",
    "StreamLayers",
    "Tokens",
    "Vram",
    "memory_of",
    "one_of",
]


class HostMemory(StrEnum):
    """Where streamed layers wait in host memory."""

    AUTO = "auto"
    PINNED = "pinned"
    REGISTERED = "registered"
    STAGED = "staged"


class Policy(StrEnum):
    """Eviction policies of a page pool."""

    CLOCK = "clock"
    LRU = "lru"
    BELADY = "belady"


class Dtype(StrEnum):
    """Weight types."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"


class Codec(StrEnum):
    """How layers are kept and moved."""

    NONE = "none"
    FOUR = "4bit"
    THREE = "3bit"


def _model(value: str) -> Path:
    """A path as it is; a name of a trained model stands for it where there is no such path."""
    path = Path(value)
    if path.exists():
        return path
    from xinfer_lab.models import TRAINED

    return TRAINED.get(value, path)


Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        parser=_model,
        help="Checkpoint: a directory with config.json and safetensors, or one .safetensors file; or shakespeare, the "
        "small trained model that comes with the package.",
    ),
]
StreamLayers = Annotated[int, typer.Option(metavar="N", help="Slots to stream through, at least 2; 1 counts as 2.")]
Steps = Annotated[int, typer.Option(min=1, metavar="T", help="Forward passes: the prompt, then one token each.")]
Prompt = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Text to start from; needs the model's tokenizer.json.")
]
Tokens = Annotated[str | None, typer.Option(metavar="1,2,3", help="Token ids to start from, instead of text.")]
Context = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="TOKENS", help="Tokens that the cache has room for; by default as many as the run needs."
    ),
]
EngineFolder = Annotated[
    Path | None,
    typer.Option("--engine", metavar="DIR", help="Stream with your own parts: the folder my_engine beside labs/."),
]
OnDevice = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="KIND",
        help="auto, emulated, host (threads, measured), cuda, cuda:INDEX, or several cards that share the layers, as "
        "cuda:0,cuda:1; auto takes CUDA where there is a GPU.",
    ),
]
Cards = Annotated[
    int,
    typer.Option(
        "--devices",
        min=1,
        metavar="G",
        help="Cards of the emulated device, each with its own memory and link: layer i lives on card i mod G.",
    ),
]
Schedule = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Order of the emulated device: timed, copies_first, copies_last or random(SEED)."
    ),
]
Gpu = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="GPU that the virtual clock models: rtx4090, h200 or laptop (the default)."),
]
Vram = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Device memory budget, such as 8GiB or 500MB; none by default.")
]
Paged = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Device memory for a page pool of layers; room for at least two."),
]
PagedCache = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Device memory for a page pool of the KV cache."),
]
PagedExperts = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Device memory for a page pool of experts; room for at least two."),
]
Page = Annotated[str | None, typer.Option(metavar="SIZE", help="Size of a page; by default 2MiB.")]
EvictBy = Annotated[
    Policy | None,
    typer.Option(help="Which page leaves when a frame is needed; by default belady, and lru for experts."),
]
Host = Annotated[
    HostMemory,
    typer.Option(
        help="pinned: a pinned copy of the layers; registered: the checkpoint's files, pinned in place; staged: a "
        "small pinned ring that each layer passes through; auto: the best one possible here, which is then reported."
    ),
]
Size = Annotated[
    str, typer.Argument(metavar="MODEL", help="0.5b, 1.5b, 7b, 14b, 32b, 72b, or a directory with config.json.")
]


def memory_of(vram: str | None) -> int | None:
    """The bytes that ``--vram`` asks for."""
    return None if vram is None else parse_size(vram)


def one_of(prompt: str | None, tokens: str | None) -> None:
    """Refuse ``--prompt`` beside ``--tokens``."""
    if prompt is not None and tokens is not None:
        raise CommandError("--prompt and --tokens exclude each other; give one of them")
