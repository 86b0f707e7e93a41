"""Admission: whether a device can take a record, given all that it took before; stream rules and memory together."""

from __future__ import annotations

from xinfer_lab.device.kernels import KernelTable
from xinfer_lab.device.memory import MemoryBudget
from xinfer_lab.device.records import Allocate, Dispatch, Free, HostWrite, Record
from xinfer_lab.device.rules import StreamRules
from xinfer_lab.device.sources import Sources

__all__ = ["Admission"]


class Admission:
    """First `check`, which may refuse and changes nothing; then, once the record is sure to be performed, `note`."""

    def __init__(self, kernels: KernelTable, memory: MemoryBudget, sources: Sources) -> None:
        self.rules = StreamRules(kernels)
        self._kernels, self._memory, self._sources = kernels, memory, sources

    def check(self, record: Record) -> int:
        """Raise a `DeviceError` if ``record`` cannot be taken. Returns the bytes of device memory that it needs."""
        self.rules.check(record)
        if isinstance(record, Dispatch):
            size = self._kernels[record.kernel].workspace(record.operands, record.params)
            self._memory.check_workspace(size)
            return size
        if isinstance(record, HostWrite):
            self._sources.check(record.source)
        elif isinstance(record, Allocate) and record.heap == "default":
            self._memory.check(record.buffer, record.size)
            return record.size
        return 0

    def note(self, record: Record, need: int) -> None:
        """Take in ``record``, for which `check` returned ``need``."""
        self.rules.note(record)
        if isinstance(record, Free):
            self._memory.give_back(record.buffer)
        elif need and isinstance(record, Allocate):
            self._memory.take(record.buffer, need)
        elif need:
            self._memory.reserve_workspace(need)
