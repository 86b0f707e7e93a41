"""Finds everything that a command stream shows by itself: hazards and state faults, record by record."""

from __future__ import annotations

from dataclasses import dataclass

from xinfer_lab.device.device_states import DeviceStates
from xinfer_lab.device.hazard import Hazard
from xinfer_lab.device.hazards import HazardChecker
from xinfer_lab.device.kernels import KernelTable
from xinfer_lab.device.records import Record
from xinfer_lab.device.state_faults import StateFault
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.device.tracker_invariant import TrackerInvariant

__all__ = ["Findings", "StreamChecker", "check_stream"]


@dataclass(frozen=True, slots=True)
class Findings:
    """Hazards (a fence is missing) and state faults (D3D12 rejects it, or the tracker is wrong), in stream order."""

    hazards: tuple[Hazard, ...] = ()
    state_faults: tuple[StateFault, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to report."""
        return bool(self.hazards or self.state_faults)

    def report(self) -> str:
        """All reports, hazards first."""
        return "\n\n".join(
            [*(hazard.report() for hazard in self.hazards), *(fault.report() for fault in self.state_faults)]
        )


class StreamChecker:
    """Looks at records in issue order: the hazard checker, the device's states and the tracker's invariant together."""

    def __init__(self, kernels: KernelTable) -> None:
        self._hazards = HazardChecker(kernels)
        self._states = DeviceStates(kernels)
        self._invariant = TrackerInvariant(kernels)

    def observe(self, *records: Record) -> Findings:
        """The findings that the next ``records`` complete."""
        hazards: list[Hazard] = []
        faults: list[StateFault] = []
        for record in records:
            hazards += self._hazards.observe(record)
            faults += self._states.observe(record)
            faults += self._invariant.observe(record)
        return Findings(tuple(hazards), tuple(faults))


def check_stream(stream: CommandStream, kernels: KernelTable) -> Findings:
    """All findings of ``stream``, the same on every machine and run."""
    return StreamChecker(kernels).observe(*stream)
