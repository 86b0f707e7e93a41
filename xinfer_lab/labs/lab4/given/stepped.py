"""A streamer written as one function, called for each step, and the forward pass that calls it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.queue import CommandList
from xinfer_lab.device.records import View
from xinfer_lab.labs.lab4.given.tracked_ring import TrackedRing
from xinfer_lab.qwen2.layout import LayerLayout, layer_layout
from xinfer_lab.residency.errors import LayerOrderError
from xinfer_lab.residency.host import HostLayers, PinnedLayers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.weights import LayerSlot, LayerWeights, ModelWeights

__all__ = ["RunStep", "StepRing", "SteppedModel", "step_ring"]

Compute = Callable[..., None]
RunStep = Callable[["StepRing", int, Compute], None]
"""``run_step(ring, step, compute)``: everything that a streamer does for one step.

``compute(slot)`` submits the layer's computing from ``slot`` to the direct queue, as a list of its own;
``compute(slot, cmds)``
records it into the open list ``cmds`` instead.
"""


class StepRing(TrackedRing):
    """A ring whose first ``pool`` slots are filled at the start; all else is up to ``run_step``. ``spare`` slots more
    are never filled.

    It runs once: `begin` is called one time.
    """

    def __init__(
        self,
        device: Device,
        layout: LayerLayout,
        dtype: torch.dtype,
        host: HostLayers,
        layers: int,
        pool: int,
        run_step: RunStep,
        *,
        spare: int = 0,
    ) -> None:
        super().__init__(device, layout, dtype, host, layers, pool + spare)
        self.pool = pool
        self._run_step = run_step
        self._memory = (layout, dtype)
        self._made = pool + spare
        self.begun = 0

    def begin_at(self, steps: int) -> None:
        """As of a `BareRing`; ``steps`` is a multiple of the pool and of the number of slots, so that the first slots
        are those of the first steps."""
        super().begin_at(steps)
        self.begun = steps

    def new_slot(self) -> LayerSlot:
        """Memory for one more layer. Raises `OutOfDeviceMemory` when the budget has no room."""
        self._made += 1
        return LayerSlot(self.device, f"slot[{self._made - 1}]", *self._memory)

    def begin(self, steps: int) -> None:
        """Announce ``steps`` passes and fill the first slots. Raises `LayerOrderError` when called again."""
        if self.end > self.begun:
            raise LayerOrderError("a stepped ring runs once; make another one")
        self.end = self.begun + steps * self.layers
        for number in range(min(self.pool, self.end - self.begun)):
            self.engine.upload(self.layer_of(self.begun + number), self.slots[number])

    def run(self, compute: Compute) -> None:
        """The next step."""
        self._run_step(self, self.step, compute)
        self.step += 1

    def ensure(self, layer: int) -> LayerWeights:
        """Always raises `LayerOrderError`: the layer is computed within `run`."""
        raise LayerOrderError("a stepped ring computes its layers itself: use a SteppedModel")

    def release(self, layer: int) -> None:
        """Nothing."""


class SteppedModel(QwenModel):
    """A `QwenModel` that lets its `StepRing` say when, and in which list, each layer is computed."""

    def _run_layer(self, layer: int, hidden: View) -> None:
        kv = self.cache.ensure(layer, self.position, hidden.shape[1])

        def compute(slot: LayerSlot, commands: CommandList | None = None) -> None:
            if commands is not None:
                self._dispatch_layer(commands, layer, hidden, kv, slot.holding(layer))
                return
            with self.device.direct_queue.record(f"layer {layer}") as own:
                self._dispatch_layer(own, layer, hidden, kv, slot.holding(layer))

        ring: Any = self.source
        ring.run(compute)


def step_ring(run_step: RunStep, pool: int, *, spare: int = 0) -> Callable[[Device, ModelWeights], StepRing]:
    """What makes a `StepRing` for a model, from pinned host memory."""

    def make(device: Device, weights: ModelWeights) -> StepRing:
        layout, layers = layer_layout(weights.config), weights.config.num_hidden_layers
        host = PinnedLayers(device, layout, layers)
        return StepRing(device, layout, weights.config.dtype, host, layers, pool, run_step, spare=spare)

    return make
