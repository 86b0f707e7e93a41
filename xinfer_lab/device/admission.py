"""Admission: whether a device can take a record, given all that it took before; stream rules and memory together.

In two steps, since several records may be one call: all of them are checked before any is performed, so a call that is
refused leaves nothing half done.
"""

from __future__ import annotations

from collections.abc import Sequence

from xinfer_lab.device.kernels import KernelTable
from xinfer_lab.device.memory import MemoryBudget
from xinfer_lab.device.node_names import node_of
from xinfer_lab.device.records import Allocate, Dispatch, Free, HostWrite, Record, Source
from xinfer_lab.device.sources import Sources
from xinfer_lab.device.stream_rules import StreamRules

__all__ = ["Admission"]


class Admission:
    """First `check`, which may refuse and changes nothing; then, once the record is sure to be performed, `note`."""

    def __init__(self, kernels: KernelTable, memories: Sequence[MemoryBudget], sources: Sources) -> None:
        self.rules = StreamRules(kernels)
        self._kernels, self._memories, self._sources = kernels, memories, sources

    def check(self, record: Record) -> int:
        """Raise a `DeviceError` if ``record`` cannot be taken. Returns the bytes of device memory that it needs."""
        self.rules.check(record)
        if isinstance(record, Dispatch):
            size = self._kernels[record.kernel].workspace(record.operands, record.params)
            self._memories[node_of(record.queue)].check_workspace(size)
            return size
        if isinstance(record, HostWrite):
            self._sources.check(record.source)
        elif isinstance(record, Allocate) and record.mapped:
            self._sources.check(Source(record.mapped, 0, record.size))
        elif isinstance(record, Allocate) and record.heap == "default":
            self._memories[record.node].check(record.buffer, record.size)
            return record.size
        return 0

    def check_again(self, record: Record) -> int:
        """As `check`, for a record that was admitted before with the same operands, all of whose buffers still live:
        only what may differ from one execution of a command list to the next is looked at."""
        if not isinstance(record, Dispatch):
            return 0
        kernel = self._kernels[record.kernel]
        if kernel.varying:
            (kernel.check_varying or kernel.check)(record.operands, record.params)
        size = kernel.workspace(record.operands, record.params)
        self._memories[node_of(record.queue)].check_workspace(size)
        return size

    def note(self, record: Record, need: int) -> None:
        """Take in ``record``, for which `check` returned ``need``."""
        if isinstance(record, Free):
            self._memories[self.rules.buffers[record.buffer].node].give_back(record.buffer)
        elif need and isinstance(record, Allocate):
            self._memories[record.node].take(record.buffer, need)
        elif need and isinstance(record, Dispatch):
            self._memories[node_of(record.queue)].reserve_workspace(need)
        self.rules.note(record)
