"""Lab 3: the student's streamer on this machine itself, measured: queues are threads, and layers come from its disk."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from xinfer_lab.device.device import KERNELS, Device
from xinfer_lab.device.host_device import HostDevice
from xinfer_lab.device.simulated import simulate
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.device.timeline import Timeline
from xinfer_lab.qwen2 import SyntheticSpec, write_checkpoint
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.lab_gpu import lab_gpu
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.parity import Run, compare_logits, parity_line, run_fixed
from xinfer_lab.residency.source import LayerSource
from xinfer_lab.residency.tiers import open_host
from xinfer_lab.residency.weights import CheckpointWeights, ModelWeights
from xinfer_lab.views.compare import compare_timelines
from xinfer_lab.views.picture import Picture
from xinfer_lab.views.slots import slots_of

__all__ = ["MODEL", "on_this_machine", "rates"]

MODEL = SyntheticSpec(layers=8, hidden=640, heads=10, kv_heads=2, intermediate=1728, vocab=64, context=2048)
"""Layers of 17 MB: large enough that reading one takes far longer than starting to."""

PROBE = 32
"""Tokens of the pass from which the length of the measured one is chosen."""

Make = Callable[[Device, ModelWeights], LayerSource]


@dataclass(frozen=True)
class _Measured:
    run: Run
    stream: CommandStream
    link: str

    @property
    def passes(self) -> Timeline:
        assert self.run.timeline is not None
        return self.run.timeline.since(self.run.first_record)


def on_this_machine(streaming: type[Any], *, pool: int = 2, model: SyntheticSpec = MODEL) -> Picture:
    """Serial and ``streaming`` (a class of layer sources) on a model that is read from the disk: both timelines, as
    measured on one axis.

    The prompt is as long as makes computing a layer take about as long as reading it. Prints what the virtual clock
    expects from both times, what was measured, and whether the bytes equal those of the resident run.
    """
    with tempfile.TemporaryDirectory(prefix="xinfer-lab-") as folder:
        path = write_checkpoint(Path(folder) / "model", model)
        probe = _run(path, _serial, PROBE)
        reading, computing = rates(probe.passes)
        tokens = max(1, min(model.context, round(PROBE * reading / computing)))
        resident = _run(path, None, tokens)
        serial, streamed = _run(path, _serial, tokens), _run(path, _streaming(streaming, pool), tokens)
    reading, computing = rates(serial.passes)
    gpu = lab_gpu(model.config(), computing / reading, tokens=tokens)
    on_clock = [_duration(simulate(one.stream, gpu, KERNELS), one) for one in (serial, streamed)]
    took = [one.passes.duration for one in (serial, streamed)]
    print(f"{tokens} tokens; a layer is read in {reading * 1e3:.0f} ms ({serial.link}) and computed in", end=" ")
    print(f"{computing * 1e3:.0f} ms")
    print(f"serial / streamed: {took[0] / took[1]:.2f} measured, {on_clock[0] / on_clock[1]:.2f} on the virtual clock")
    print(parity_line(compare_logits(resident.run.logits, streamed.run.logits)[1]))
    return compare_timelines(
        serial.passes, streamed.passes, title="Measured on this machine", names=("serial", "streamed"),
        slot_of=(slots_of(serial.stream), slots_of(streamed.stream)),
    )  # fmt: skip


def rates(timeline: Timeline) -> tuple[float, float]:
    """Seconds that reading and computing a layer take, in the mean of those in ``timeline``."""
    computed = [event for event in timeline.events if event.kind == "dispatch" and event.label.startswith("layer")]
    copied = [event.duration for event in timeline.events if event.kind == "copy" and event.lane == "copy"]
    return sum(copied) / len(computed), sum(event.duration for event in computed) / len(computed)


def _duration(timeline: Timeline, one: _Measured) -> float:
    return timeline.since(one.run.first_record).duration


def _run(path: Path, make: Make | None, tokens: int) -> _Measured:
    prompt = torch.arange(tokens, device="cpu").remainder(MODEL.vocab)[None]
    device = HostDevice()
    with Checkpoint.open(path) as checkpoint, device:
        shape: dict[str, Any] = {"context": tokens, "chunk": tokens}

        def load(on: Device) -> QwenModel:
            if make is None:
                return QwenModel.load(checkpoint, on, **shape)
            return QwenModel(CheckpointWeights(checkpoint), on, make, **shape)

        run = run_fixed(load, device, [prompt])
        return _Measured(run, device.stream, device.link)


def _serial(device: Device, weights: ModelWeights) -> LayerSource:
    from xinfer_lab.residency.factories import serial_layers

    return serial_layers("registered")(device, weights)


def _streaming(streaming: type[Any], pool: int) -> Make:
    def make(device: Device, weights: ModelWeights) -> LayerSource:
        layers: Sequence[int] = range(weights.config.num_hidden_layers)
        host = open_host("registered", device, weights, layers)
        source: LayerSource = streaming(
            device, layer_layout(weights.config), weights.config.dtype, host, len(layers), pool
        )
        return source

    return make
