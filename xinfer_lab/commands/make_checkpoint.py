"""`xinfer-lab make-checkpoint`: write a small made-up model in the Hugging Face layout."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import typer

from xinfer_lab.commands.faults import CommandError
from xinfer_lab.commands.runs import describe_model
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.qwen2.checkpoint import expected_shapes
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.synthetic import SyntheticSpec, write_checkpoint

__all__ = ["make_checkpoint", "weight_bytes"]


def weight_bytes(config: Qwen2Config) -> int:
    """Bytes of all weights of a model."""
    return sum(math.prod(shape) for shape in expected_shapes(config).values()) * config.dtype.itemsize


def make_checkpoint(directory: Path, spec: SyntheticSpec, *, force: bool) -> int:
    """Write the checkpoint that ``spec`` describes and say what it is. Raises `CommandError` if it finds no room."""
    config = spec.config()
    size = weight_bytes(config)
    existing = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    if size > (free := shutil.disk_usage(existing).free):
        raise CommandError(f"this checkpoint takes {format_bytes(size)}, but {existing} has {format_bytes(free)} free")
    write_checkpoint(directory, spec, force=force)
    files = "1 file" if spec.shards == 1 else f"{spec.shards} files"
    typer.echo(f"{directory}: {describe_model(config)}, {format_bytes(size)} of weights in {files}")
    next_command = f"parity {directory} --stream-layers 2" if config.experts is None else f"generate {directory}"
    typer.echo(f"Next: xinfer-lab {next_command}")
    return 0
