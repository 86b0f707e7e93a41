"""From a checkpoint on disk to the first token, and decoding out of each host tier."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from xinfer_lab.bench.drawn import DrawnWeights, write_drawn_checkpoint
from xinfer_lab.bench.measure import Logits, Measured, Workload, row_of, run_passes
from xinfer_lab.bench.rows import Row, Timing
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

__all__ = ["FIRST_TOKEN", "file_rows"]

FIRST_TOKEN = "from file to first token"
"""The workload: from opening the checkpoint, its pages in the system's file cache, to the logits of a prompt."""

FROM_FILE = "out of the file"
_PROMPT = 16


def file_rows(config: Qwen2Config, directory: Path, layers: int, passes: int, device: torch.device) -> Iterator[Row]:
    """Write ``layers`` layers of ``config`` as a checkpoint to ``directory``, then run it from every tier.

    Two rows each: the time to the first token, and decode steps. ``pin_memory() first`` is what offloaders do: every
    layer goes through torch's pinned allocator before anything runs; then it streams as ours does.
    """
    cut = dataclasses.replace(config, num_hidden_layers=layers)
    weights = DrawnWeights(cut, device)
    write_drawn_checkpoint(directory, weights)
    weights.forget()
    workload = Workload(1, passes, _PROMPT)
    start, resident = _run(directory, workload, device, resident_layers())
    yield from _pair("resident", start, workload, resident, resident.logits)
    start, found = _run(directory, workload, device, streaming_layers(2, "registered"), _PinnedFirst)
    yield from _pair("pin_memory() first", start, workload, found, resident.logits)
    for tier in ("registered", "pinned", "staged"):
        name = f"streaming, {tier}"
        try:
            start, found = _run(directory, workload, device, streaming_layers(2, tier))
        except (DeviceError, RequestError) as error:
            yield Row(name=name, workload=FIRST_TOKEN, note=str(error))
        else:
            yield from _pair(name, start, workload, found, resident.logits)


def _pair(name: str, start: float, workload: Workload, found: Measured, reference: Logits) -> Iterator[Row]:
    decode = row_of(name, workload, found, reference)
    yield dataclasses.replace(decode, workload=FIRST_TOKEN, timing=Timing.of([start]), moved=None)
    yield dataclasses.replace(decode, workload=f"decode, {FROM_FILE}")


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
