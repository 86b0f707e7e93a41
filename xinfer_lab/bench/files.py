"""Measures from a checkpoint on disk to the first token, and decoding out of each host tier."""

from __future__ import annotations

import dataclasses
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from xinfer_lab.bench.drawn import DrawnWeights, write_drawn_checkpoint
from xinfer_lab.bench.measure import Logits, Measured, Workload, empty_cache, row_of, run_passes
from xinfer_lab.bench.rows import FIRST_TOKEN, FROM_FILE, Row, Timing
from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.device.errors import DeviceError
from xinfer_lab.device.records import Source
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import layer_layout, tensor_name
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.factories import SourceFactory, resident_layers, streaming_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.weights import CheckpointWeights, ModelWeights

__all__ = ["file_rows"]

_PROMPT = 16
_TIERS = ("registered", "pinned", "staged")


def file_rows(config: Qwen2Config, directory: Path, layers: int, passes: int, device: torch.device) -> Iterator[Row]:
    """Write ``layers`` layers of ``config`` as a checkpoint below ``directory``, run it from every tier, delete it.

    Two rows each: the time to the first token, and decode steps. ``pin_memory() first`` is what offloaders do: every
    layer goes through torch's pinned allocator before anything runs; then it streams like ours. A row that fails
    says why. Raises OSError where the checkpoint cannot be written.
    """
    cut = dataclasses.replace(config, num_hidden_layers=layers)
    weights = DrawnWeights(cut, device)
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="checkpoint-", dir=directory) as made:
        write_drawn_checkpoint(Path(made), weights)
        weights.forget()
        yield from _rows(Path(made), Workload(1, passes, _PROMPT), device)


def _rows(directory: Path, workload: Workload, device: torch.device) -> Iterator[Row]:
    ways: list[tuple[str, SourceFactory, Callable[[Checkpoint], ModelWeights]]] = [
        ("resident", resident_layers(), CheckpointWeights),
        ("pin_memory() first", streaming_layers(2, "registered"), _PinnedFirst),
    ]
    ways += [(f"streaming, {tier}", streaming_layers(2, tier), CheckpointWeights) for tier in _TIERS]
    reference: Logits | None = None
    for name, make, read in ways:
        try:
            start, found = _run(directory, workload, device, make, read)
        except Exception as error:
            known = isinstance(error, (DeviceError, RequestError))
            if not known:
                traceback.print_exc()
            yield Row(name=name, workload=FIRST_TOKEN, note=f"{type(error).__name__}: {error}", broken=not known)
            continue
        finally:
            empty_cache()
        if name == "resident":
            reference = found.logits
        decode = row_of(name, workload, found, reference)
        yield dataclasses.replace(decode, workload=FIRST_TOKEN, timing=Timing.of([start]), moved=None)
        yield dataclasses.replace(decode, workload=FROM_FILE)


def _run(
    directory: Path,
    workload: Workload,
    device: torch.device,
    make: SourceFactory,
    read: Callable[[Checkpoint], ModelWeights] = CheckpointWeights,
) -> tuple[float, Measured]:
    """Seconds to the first logits, and decode steps after them."""
    start = time.perf_counter()
    with Checkpoint.open(directory) as checkpoint, CudaDevice(device.index or 0) as opened:
        weights = read(checkpoint)
        with QwenModel(weights, opened, make, context=workload.context, chunk=_PROMPT) as model:
            ends: list[float] = []

            def forward(tokens: torch.Tensor) -> torch.Tensor:
                logits = model.forward(tokens)
                ends.append(time.perf_counter())
                return logits

            passes = workload.passes + 2
            model.begin(passes)
            seconds, logits = run_passes(workload, checkpoint.config, forward, model.reset)
            moved = model.source.uploads * layer_layout(checkpoint.config).weight_nbytes // passes
            return ends[0] - start, Measured(seconds, logits, moved, None, None)


class _PinnedFirst(CheckpointWeights):
    """A checkpoint whose layers go through torch's `pin_memory` before anything else, as offloaders do it."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint)
        layout = layer_layout(checkpoint.config)
        names = [place.name for group in layout.groups for place in group.tensors]
        self._pinned = {
            name: checkpoint.bytes(name).pin_memory()
            for layer in range(checkpoint.config.num_hidden_layers)
            for name in (tensor_name(layer, relative) for relative in names)
        }

    def bytes(self, name: str) -> torch.Tensor:
        """The tensor's bytes, pinned if it belongs to a layer."""
        return self._pinned[name] if name in self._pinned else super().bytes(name)

    def locate(self, name: str) -> Source:
        """The tensor itself, where it was pinned."""
        return Source(name, 0, self.nbytes(name) or 0)
