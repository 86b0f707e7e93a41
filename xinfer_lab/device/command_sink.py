"""What queues, fences and buffers need of the device that they belong to.

A device makes them and they submit to it. This protocol stands between the two, so that neither module imports the
other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch

from xinfer_lab.device.kernels import KernelTable
from xinfer_lab.device.records import AssumeCommon, Record, Scalar
from xinfer_lab.device.sources import Sources
from xinfer_lab.device.states import StateTracker
from xinfer_lab.device.stream_rules import StreamRules

__all__ = ["CommandSink"]


class CommandSink(Protocol):
    """A device as its handles see it: it takes records, and knows kernels, sources, states and signalled values."""

    name: str
    kernels: KernelTable
    rules: StreamRules
    sources: Sources
    tracker: StateTracker

    def submit(self, *records: Record) -> torch.Tensor | None:
        """Admit, check, perform and keep ``records``; the bytes of a host read."""

    def next_call(self) -> int:
        """The number of the next ExecuteCommandLists call."""

    def fresh_name(self, stem: str) -> str:
        """A name that nothing has yet."""

    def heap_of(self, buffer: str) -> str:
        """The heap that ``buffer`` lies on."""

    def open_list(self, commands: Any) -> None:
        """A command list begins to record."""

    def close_list(self, commands: Any, *, abandon: bool) -> None:
        """Its block has ended: execute it, or forget it."""

    def may_repeat(self, kept: Any) -> bool:
        """Whether a kept call may be executed again as it stands."""

    def execute_again(self, commands: Any, params: Mapping[str, Scalar]) -> None:
        """Execute a kept command list once more, with other parameters where they may vary."""

    def record_bookkeeping(self, record: AssumeCommon) -> None:
        """Keep what the program tells its tracker."""
