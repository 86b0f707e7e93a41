"""A small model to be run within a budget, on a GPU of its own: how its layers are kept and moved is the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from xinfer_lab.device.gpu_spec import KERNEL_COPY, GpuSpec
from xinfer_lab.device.records import Dispatch
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.device.timeline import Timeline
from xinfer_lab.grading.programs.model_case import ModelCase, run_model
from xinfer_lab.grading.values import Value
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.factories import compressed_layers, planned_layers, resident_layers
from xinfer_lab.residency.weights import SizedWeights, SyntheticWeights

__all__ = [
    "CODEC",
    "DEPTH",
    "CodedWeights",
    "KeptPlan",
    "PlannedCase",
    "encoded_weights",
    "factory_of",
    "needs_of",
    "pass_time",
]

CODEC = "3bit"
"""The coded form that a plan may choose."""

DEPTH = 2
"""Layers that the staging ring of the tier "staged" has room for."""

TRANSFER = 1e-3
"""Seconds that a plain layer takes over the link."""


@dataclass(frozen=True, slots=True)
class PlannedCase(ModelCase):
    """A `ModelCase` on a GPU where a layer crosses the link in a millisecond.

    ``computing`` and ``reading`` are the shares of that time which a layer's FLOPs for one token take, and reading its
    weights from device memory; ``memcpy`` is the host's copying rate over the link's. ``pinned``: bytes of upload heaps
    that layers may occupy while passes run. ``pool`` is not used: the plan says how many slots there are.
    """

    computing: float
    reading: float
    memcpy: float
    pinned: int

    @property
    def gpu(self) -> GpuSpec:
        """The GPU."""
        layer = layer_layout(self.config).nbytes
        base = ModelCase.spec(self, self.computing)
        return GpuSpec(
            "the lab's GPU", 2**40, layer / TRANSFER, 0.0, base.flops, layer / (self.reading * TRANSFER), 1e-6,
            self.memcpy * layer / TRANSFER, 0.0, KERNEL_COPY,
        )  # fmt: skip

    def spec(self, ratio: float = 1.0) -> GpuSpec:
        """The GPU, whatever ``ratio`` is asked for."""
        return self.gpu

    def weights(self) -> CodedWeights:
        """The model's weights, and their coded form."""
        return CodedWeights(self)


@lru_cache(maxsize=8)
def _encoded(config: Any, seed: int) -> Any:
    from xinfer_lab.residency.codec.encoded import EncodedMemory

    return EncodedMemory(SyntheticWeights(config, seed), CODEC)


def encoded_weights(case: ModelCase) -> Any:
    """The coded layers of ``case``, made once. Only for bfloat16."""
    return _encoded(case.config, case.seed)


class CodedWeights(SyntheticWeights):
    """A case's weights under their names; under `encoded_name`, where there is one, each layer's coded form."""

    def __init__(self, case: ModelCase) -> None:
        super().__init__(case.config, case.seed)
        self._coded = encoded_weights(case) if case.dtype == "bfloat16" else None

    def nbytes(self, name: str) -> int | None:
        """Bytes of the tensor or the coded layer ``name``; None if there is none."""
        size = super().nbytes(name)
        return self._coded.nbytes(name) if size is None and self._coded is not None else size

    def bytes(self, name: str) -> torch.Tensor:
        """Its bytes."""
        coded: bool = self._coded is not None and self._coded.nbytes(name) is not None
        return self._coded.bytes(name) if coded else super().bytes(name)  # type: ignore[union-attr]


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """A plan as the executors take it."""

    layers: int
    streamed: tuple[int, ...]
    slots: int
    compress: str


def pass_time(timeline: Timeline, stream: Any, steps: int) -> float:
    """Seconds of one pass in the middle of a run of ``steps`` passes: the first is not steady yet, the last fetches
    nothing for a pass after it. Raises ValueError where there are not that many passes."""
    heads = {i for i, record in enumerate(stream) if isinstance(record, Dispatch) and record.kernel == "lm_head"}
    ends = [event.end for event in timeline.events if event.record in heads]
    if len(ends) != steps or steps < 3:
        raise ValueError(f"{len(ends)} passes, not {steps}")
    return (ends[-2] - ends[0]) / (steps - 2)


def _sized_run(case: PlannedCase, make: Any) -> tuple[float, int]:
    """Seconds of a pass and the peak of device memory, from sizes alone."""
    device = SimulatedDevice(case.gpu, memory=None, check=False)
    run_model(case, SizedWeights(case.config), device, make)
    return pass_time(device.timeline(), device.stream, case.steps), device.memory.use().peak


def needs_of(case: PlannedCase) -> dict[str, Value]:
    """What a planner is told of ``case``: bytes, bytes a second, seconds.

    All of it is measured on a device of sizes with everything resident, plain and (bfloat16 only) coded.
    """
    layer, layers = layer_layout(case.config).nbytes, case.layers
    time, peak = _sized_run(case, resident_layers())
    forms: dict[str, Mapping[str, Value]] = {
        "plain": {"layer_bytes": layer, "always": peak - layers * layer, "t_decode": 0.0}
    }
    if case.dtype == "bfloat16":
        encoded = encoded_weights(case)
        sizes = [table.nbytes for table in encoded.layers]
        coded, peak = _sized_run(case, compressed_layers(encoded, ()))
        forms["coded"] = {
            "layer_bytes": max(sizes),
            "always": peak - sum(sizes),
            "t_decode": (coded - time) / layers,
        }
    gpu = case.gpu
    return {
        "layers": layers,
        "budget": case.memory,
        "pinned": case.pinned,
        "ring": DEPTH,
        "link": gpu.link_bandwidth,
        "memcpy": gpu.host_bandwidth,
        "t_pass": time,
        "forms": forms,
    }


def factory_of(plan: KeptPlan, host: str, case: PlannedCase) -> Any:
    """What makes the layers of ``case`` by ``plan``, waiting in the host tier ``host``."""
    encoded = None if plan.compress == "none" else encoded_weights(case)
    return planned_layers(plan, host, encoded=encoded)
