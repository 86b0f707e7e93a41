"""Predicts the times of a pass under a plan, by the virtual clock, and the least that is possible."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch

from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.device.records import Copy
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.cache import contiguous_cache
from xinfer_lab.residency.codec.encoded import EncodedWeights
from xinfer_lab.residency.factories import planned_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.plan import GroupPlan, Plan, Shape
from xinfer_lab.residency.weights import SizedWeights

__all__ = ["PlanTimes", "predict"]


@dataclass(frozen=True, slots=True)
class PlanTimes:
    """Seconds of one pass: as the virtual clock has it, and the least that is possible: ``bound`` = max(``resident``,
    ``link``), computing with everything there, and moving the bytes that are not, of several cards over the busiest
    link."""

    time: float
    resident: float
    link: float

    @property
    def bound(self) -> float:
        """The least time of a pass."""
        return max(self.resident, self.link)

    @property
    def binding(self) -> str:
        """What binds it: "link" or "computing"."""
        return "link" if self.link > self.resident else "computing"


def predict(
    config: Qwen2Config, shape: Shape, plan: Plan | GroupPlan, spec: GpuSpec, encoded: EncodedWeights | None = None
) -> tuple[PlanTimes, PlanTimes]:
    """Times of a pass over ``chunk`` tokens (the prefill) and of a later one over a single token, in the middle of a
    long run; with a cache in pages over the last token of the context, for which all of them have to come.
    """
    tokens = shape.chunk or shape.context
    prefill = _times(config, shape, plan, spec, encoded, tokens, 0)
    position = shape.context - 1 if shape.paged else min(tokens, shape.context - 1)
    return prefill, _times(config, shape, plan, spec, encoded, 1, position)


def _times(
    config: Qwen2Config,
    shape: Shape,
    plan: Plan | GroupPlan,
    spec: GpuSpec,
    encoded: EncodedWeights | None,
    tokens: int,
    position: int,
) -> PlanTimes:
    # More passes than are looked at: the first ones are not steady yet, the last has nothing to fetch for a pass after
    # it. What is in pages takes longer until it goes round.
    passes = 7 if shape.paged else 3
    ends: list[float] = []
    moved = 0.0
    cards = len(plan.cards) if isinstance(plan, GroupPlan) else 1
    device = SimulatedDevice(spec, memory=None, check=False, nodes=cards)
    with device:
        model = _model(config, shape, device, plan, encoded)
        if position:
            for layer in range(config.num_hidden_layers):
                # The tokens before are in the cache, and were not computed.
                model.cache.release(layer, 0, position)
        model.begin(passes + 1)
        for _ in range(passes):
            model.position = position
            first = len(device.stream)
            model.forward(torch.zeros(shape.batch, tokens, dtype=torch.int64, device="cpu"))
            ends.append(device.now)
            copies = [record for record in device.stream.records[first:] if isinstance(record, Copy)]
            moved = max(
                sum(spec.copy_time(copy.dst.size) for copy in copies if copy.queue == node.copy_queue.name)
                for node in device.nodes
            )
        model.close()
    device = SimulatedDevice(spec, memory=None, check=False, nodes=cards)
    with device:
        everything = dataclasses.replace(shape, make_cache=contiguous_cache)
        model = _model(config, everything, device, Plan(plan.layers, (), 0, layer_layout(config).nbytes, {}, None))
        model.position = position
        before = device.now
        model.forward(torch.zeros(shape.batch, tokens, dtype=torch.int64, device="cpu"))
        resident = device.now - before
        model.close()
    return PlanTimes(ends[-1] - ends[-2], resident, moved)


def _model(
    config: Qwen2Config,
    shape: Shape,
    device: SimulatedDevice,
    plan: Plan | GroupPlan,
    encoded: EncodedWeights | None = None,
) -> QwenModel:
    factory = planned_layers(plan, encoded=encoded)
    return QwenModel(
        SizedWeights(config), device, factory, batch=shape.batch, context=shape.context, chunk=shape.chunk,
        positions=shape.positions, host_embedding=plan.host_embedding, make_cache=shape.make_cache,
    )  # fmt: skip
