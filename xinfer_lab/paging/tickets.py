"""Tickets: what a queue has done, counted by a fence of its own, and who already waits for how much of it.

Otherwise every use of a page would need its own fence, or a wait each time. With tickets, a queue that has waited once
is not made to wait again for the same ticket or an earlier one.
"""

from __future__ import annotations

from xinfer_lab.device.device import Device
from xinfer_lab.device.queue import CommandQueue

__all__ = ["Tickets"]


class Tickets:
    """A fence of ``queue`` that counts. A *ticket* is one of its values: all that was submitted before it is over once
    the fence is there. Ticket 0 is over from the start.

    A queue that waits for a ticket is past all earlier ones too, so it is asked to wait only for what is new.
    """

    def __init__(self, device: Device, queue: CommandQueue, name: str) -> None:
        self.queue = queue
        self.fence = device.create_fence(device.fresh_name(name))
        self._passed: dict[str, int] = {}
        self._promised = 0

    def promise(self) -> int:
        """The ticket that the next `signal` gives out, for what is submitted before it."""
        self._promised = self.fence.last_submitted + 1
        return self._promised

    @property
    def last(self) -> int:
        """The last ticket that anything stands for, given out or promised."""
        return max(self._promised, self.fence.last_submitted)

    def signal(self) -> int:
        """Signal after all that was submitted to the queue so far; returns the ticket."""
        ticket = self.fence.last_submitted + 1
        self.queue.signal(self.fence, ticket)
        return ticket

    def hold(self, queue: CommandQueue, ticket: int) -> None:
        """Let ``queue`` go no further before ``ticket``. Nothing is submitted where it is past that already."""
        if ticket <= self._passed.get(queue.name, 0) or queue is self.queue:
            return
        self._reach(ticket)
        queue.wait(self.fence, ticket)
        self._passed[queue.name] = ticket

    def block(self, ticket: int) -> None:
        """Block the host until ``ticket``."""
        if ticket > self._passed.get("", 0):
            self._reach(ticket)
            self.fence.wait(ticket)
            self._passed[""] = ticket

    def _reach(self, ticket: int) -> None:
        # A copy went out and its signal failed: the ticket was promised, and is given out now.
        if ticket > self.fence.last_submitted:
            self.signal()
