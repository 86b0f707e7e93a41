"""Kernels and a device for the tests of page pools: bytes that can be told apart, and transfers that fail on demand."""

from __future__ import annotations

from typing import Any

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.kernels import Access, Cost, Kernel, KernelTable
from xinfer_lab.device.records import Copy, Record, Signal, Wait
from xinfer_lab.paging.extent import Extent
from xinfer_lab.paging.pool import HybridMemoryPool

PAGE = 512
"""Bytes of a page here: small, and two pages differ in where they lie."""


def kernels() -> KernelTable:
    """``stamp``: fill ``page`` with a value; ``peek``: copy ``page`` to ``seen``."""
    table = KernelTable()
    table.register(
        Kernel(
            name="stamp",
            run=lambda tensors, params: tensors["page"].fill_(params["value"]),
            access=lambda operands, params: Access((), (operands["page"].span,)),
            cost=lambda operands, params: Cost(0.0, float(operands["page"].nbytes)),
            workspace=lambda operands, params: 0,
            check=lambda operands, params: None,
        )
    )
    table.register(
        Kernel(
            name="peek",
            run=lambda tensors, params: tensors["seen"].copy_(tensors["page"]),
            access=lambda operands, params: Access((operands["page"].span,), (operands["seen"].span,)),
            cost=lambda operands, params: Cost(0.0, 2.0 * operands["page"].nbytes),
            workspace=lambda operands, params: 0,
            check=lambda operands, params: None,
        )
    )
    return table


class Fault(RuntimeError):
    """A transfer failed, on purpose."""


class FaultyDevice(EmulatedDevice):
    """Refuses the copy, signal or wait after the next ``countdown`` ones; None: none."""

    countdown: int | None = None

    def _perform(self, index: int, record: Record) -> Any:
        if self.countdown is not None and isinstance(record, (Copy, Signal, Wait)):
            if self.countdown == 0:
                self.countdown = None
                raise Fault(f"no {record.op} today")
            self.countdown -= 1
        return super()._perform(index, record)


class Witness:
    """What the direct queue saw in pages, looked at once the host has waited for it."""

    def __init__(self, device: Device, capacity: int = 2**16) -> None:
        self.device = device
        self._seen = device.create_buffer(capacity, "seen")
        self._back = device.create_readback_heap(capacity, "seen.back")
        self._fence = device.create_fence("seen")
        self._expected: list[tuple[int, bytes, str]] = []
        self._used = 0

    def stamp(
        self, pool: HybridMemoryPool, extent: Extent, value: int, start: int = 0, size: int | None = None
    ) -> None:
        """The direct queue fills bytes of the extent, which is acquired, with ``value``."""
        view = pool.view(extent, "uint8", (extent.nbytes - start if size is None else size,), start)
        self.device.direct_queue.dispatch("stamp", params={"value": value}, page=view, label=f"stamp {extent.name}")

    def peek(self, pool: HybridMemoryPool, extent: Extent, expected: bytes) -> None:
        """The direct queue looks at the extent, which is acquired, and should see ``expected``."""
        if self._used + extent.nbytes > self._seen.size:
            self.check()
        view = pool.view(extent, "uint8", (extent.nbytes,))
        seen = self._seen.view("uint8", (extent.nbytes,), self._used)
        self.device.direct_queue.dispatch("peek", page=view, seen=seen, label=f"peek {extent.name}")
        self._expected.append((self._used, expected, extent.name))
        self._used += extent.nbytes

    def check(self) -> None:
        """Wait, and compare everything that was seen since the last time."""
        if not self._expected:
            return
        self.device.direct_queue.copy(self._back, self._seen)
        value = self._fence.last_submitted + 1
        self.device.direct_queue.signal(self._fence, value)
        self._fence.wait(value)
        for offset, expected, name in self._expected:
            seen = self._back.read("uint8", (len(expected),), offset)
            assert torch.equal(seen, torch.frombuffer(bytearray(expected), dtype=torch.uint8)), name
        self._expected, self._used = [], 0
