"""Small models for the tests of residencies: checkpoints made once, and what the resident model makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.records import Copy, Record
from xinfer_lab.qwen2 import SyntheticSpec, write_checkpoint
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.parity import Run, compare_logits, greedy_run, run_fixed

SIZES = {"hidden": 16, "heads": 2, "kv_heads": 1, "intermediate": 24, "vocab": 64}
"""Tensors of these sizes are no multiples of 256 bytes, so that there is padding between all of them."""

PROMPT = torch.tensor([[5, 3, 60, 17, 2]])


def tiny(layers: int, **options: Any) -> SyntheticSpec:
    """A model of ``layers`` layers that takes next to no time."""
    return SyntheticSpec(**{"layers": layers, "context": 64, **SIZES, **options})


class Models:
    """Checkpoints by their spec, and resident runs by spec, prompt and shape; each made when first asked for."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._paths: dict[tuple[Any, ...], Path] = {}
        self._runs: dict[tuple[Any, ...], Run] = {}

    def path(self, spec: SyntheticSpec) -> Path:
        """The directory of the checkpoint that ``spec`` describes."""
        key = astuple(spec)
        if key not in self._paths:
            self._paths[key] = write_checkpoint(self._directory / f"model{len(self._paths)}", spec)
        return self._paths[key]

    def resident(self, spec: SyntheticSpec, prompt: torch.Tensor = PROMPT, passes: int = 5, **shape: int | None) -> Run:
        """``prompt`` and ``passes - 1`` greedily chosen tokens with all layers resident, on the emulated device."""
        key = (astuple(spec), tuple(prompt.flatten().tolist()), prompt.shape, passes, tuple(sorted(shape.items())))
        if key not in self._runs:
            with EmulatedDevice() as device:
                self._runs[key] = greedy_run(
                    lambda device: QwenModel.load(self.path(spec), device, **shape), device, prompt, passes
                )
            assert_clean(self._runs[key])
        return self._runs[key]

    def streamed(
        self, spec: SyntheticSpec, pool: int, device: Device, feed: Sequence[torch.Tensor], **options: Any
    ) -> Run:
        """The tokens of ``feed`` through a model that streams with ``pool`` slots."""
        return run_fixed(
            lambda device: QwenModel.load_streaming(self.path(spec), device, pool, **options), device, feed
        )


def assert_clean(run: Run) -> None:
    """No hazard and no state fault."""
    assert run.hazards == (), "\n\n".join(run.hazards)
    assert run.state_faults == (), "\n\n".join(run.state_faults)


def assert_equal(resident: Run | Sequence[torch.Tensor], other: Run | Sequence[torch.Tensor]) -> None:
    """Equal bytes, none of them NaN."""
    ours, theirs = (run.logits if isinstance(run, Run) else run for run in (resident, other))
    assert compare_logits(ours, theirs) == (True, 0.0)


def uploads(records: Sequence[Record]) -> list[tuple[int, str]]:
    """(layer, slot) of every layer uploaded while running, in order."""
    found = []
    for record in records:
        if isinstance(record, Copy) and record.label.startswith("upload layer "):
            layer, _, slot = record.label.removeprefix("upload layer ").partition(" to ")
            if record.dst.buffer == f"{slot}.attention":
                found.append((int(layer), slot))
    return found
