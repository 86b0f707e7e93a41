"""Simulation: a stream walked with sizes only, no tensors. A 72B model on a card you do not own, at once."""

from __future__ import annotations

from typing import Any

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.device.kernels import KernelTable
from xinfer_lab.device.records import HostRead, Record
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.device.timeline import Timeline
from xinfer_lab.device.virtual_clock import VirtualClock

__all__ = ["SimulatedDevice", "simulate"]


def simulate(stream: CommandStream, spec: GpuSpec, kernels: KernelTable) -> Timeline:
    """The timeline of ``stream`` on a GPU with the figures of ``spec``. Nothing is computed, no memory is needed."""
    clock = VirtualClock(spec, kernels)
    for record in stream:
        clock.observe(record)
    return clock.timeline(("direct", "copy"))


class SimulatedDevice(Device):
    """A device of sizes: it admits, counts, checks and times everything and computes nothing.

    ``memory`` defaults to the spec's memory. The host reads zeros from it (so greedy decoding sees token 0).
    """

    torch_device = torch.device("meta")
    computes = False

    def __init__(self, spec: GpuSpec, **options: Any) -> None:
        self.name, self.spec = f"simulated {spec.name}", spec
        self.peers = spec.peer_bandwidth > 0
        super().__init__(**{"memory": spec.memory_bytes, **options})
        self._clock = VirtualClock(spec, self.kernels)

    @property
    def now(self) -> float:
        """Seconds: the host's time on the virtual clock."""
        return self._clock.now

    def _add_queue(self, name: str) -> None:
        pass

    def _perform(self, index: int, record: Record) -> tuple[torch.Tensor, Record] | None:
        self._clock.observe(record)
        if isinstance(record, HostRead):
            return torch.zeros(record.src.size, dtype=torch.uint8, device="cpu"), record
        return None

    def _release_all(self) -> None:
        pass

    def timeline(self) -> Timeline:
        """The stream so far on the virtual clock."""
        return self._clock.timeline(tuple(self.queues))
