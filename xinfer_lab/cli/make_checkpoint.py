"""`xinfer-lab make-checkpoint`: write a small made-up model in the Hugging Face layout."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import typer

from xinfer_lab.cli.faults import CommandError
from xinfer_lab.cli.runs import describe_model
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.paging.extent import PAGE_BYTES
from xinfer_lab.qwen2.checkpoint import expected_shapes
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import expert_layout
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
    if config.experts is None:
        typer.echo(f"Next: xinfer-lab parity {directory} --stream-layers 2")
        return 0
    # Room for a quarter of the experts, each of them on pages of its own.
    each = -(-expert_layout(config).nbytes // PAGE_BYTES) * PAGE_BYTES
    count = config.experts.num_experts * config.num_hidden_layers
    typer.echo(f"Next: xinfer-lab experts {directory} --pool {max(2, count // 4) * each // 2**20}MiB")
    return 0
