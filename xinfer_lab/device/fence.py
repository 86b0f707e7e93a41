"""Fences: counters that one queue raises and any queue, or the host, may wait for.

A counter rather than an event: a value can be written down and compared, so "the slot is free once `consumed` is at
step + 1" is a sentence that a program and a reader share. Values only grow, so a wait never has to say which 5 it
means.
"""

from __future__ import annotations

from xinfer_lab.device.arguments import whole_number
from xinfer_lab.device.caller import caller
from xinfer_lab.device.command_sink import CommandSink
from xinfer_lab.device.records import HostWait

__all__ = ["Fence"]


class Fence:
    """A counter that starts at 0. One queue signals it, with strictly growing values; waiting means "at least".

    A value that was reached stays reached. There is no way to poll a fence: the host learns of it by waiting.
    """

    def __init__(self, device: CommandSink, name: str) -> None:
        self.device, self.name = device, name

    @property
    def last_submitted(self) -> int:
        """The highest value that a queue was asked to signal so far (0: none). It says nothing about completion."""
        return self.device.rules.last_value(self.name)

    def wait(self, value: int) -> None:
        """Block the host until the fence has reached ``value``. Raises `EarlyWait` if no queue will signal it."""
        self.device.submit(HostWait(fence=self.name, value=whole_number(value, "a fence value"), where=caller()))

    def __repr__(self) -> str:
        return f"Fence({self.name!r}, last submitted {self.last_submitted})"

    def __bool__(self) -> bool:
        raise TypeError("a fence has no truth value: it cannot be polled; wait on a queue, or let the host wait")
