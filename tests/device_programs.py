"""A few kernels and small programs that every kind of device runs, for the tests of devices."""

import struct
from collections.abc import Callable
from typing import Any

import pytest

from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.device.device import Device
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import KernelError
from xinfer_lab.device.kernels import Access, Cost, Kernel, KernelTable

SCHEDULES = ("timed", "copies_first", "copies_last", "random(1)", "random(2)", "random(3)")


def _check_fold(operands: Any, params: Any) -> None:
    if set(operands) != {"total", "weight"} or operands["total"].shape != operands["weight"].shape:
        raise KernelError("fold: wants total and weight of one shape")


def kernels(*, workspace: int = 0) -> KernelTable:
    """``fold``: total = total * 2 + weight, so that order and values show; ``fail`` raises when it runs."""
    table = KernelTable()

    def fold(tensors: Any, params: Any) -> None:
        tensors["total"].mul_(2).add_(tensors["weight"])

    def fail(tensors: Any, params: Any) -> None:
        raise ArithmeticError("this kernel fails")

    table.register(
        Kernel(
            name="fold",
            run=fold,
            access=lambda operands, params: Access(
                (operands["total"].span, operands["weight"].span), (operands["total"].span,)
            ),
            cost=lambda operands, params: Cost(2.0e6, 3.0 * operands["total"].nbytes),
            workspace=lambda operands, params: int(params.get("workspace", workspace)),
            check=_check_fold,
        )
    )
    table.register(
        Kernel(
            name="fail",
            run=fail,
            access=lambda operands, params: Access((), tuple(view.span for view in operands.values())),
            cost=lambda operands, params: Cost(1.0, 1.0),
            workspace=lambda operands, params: 0,
            check=lambda operands, params: None,
        )
    )
    return table


def emulated(**options: Any) -> EmulatedDevice:
    return EmulatedDevice(kernels=kernels(), **options)


def cuda(**options: Any) -> CudaDevice:
    return CudaDevice(kernels=kernels(), **{"check": True, "on_hazard": "collect", **options})


DEVICES = [pytest.param(emulated, id="emulated"), pytest.param(cuda, id="cuda", marks=pytest.mark.cuda)]
"""For ``parametrize("open_device", DEVICES)``: the same statement about every device that computes."""

Opener = Callable[..., Device]


def floats(*values: float) -> bytes:
    return struct.pack(f"{len(values)}f", *values)


class Ring:
    """A streaming program: ``layers`` weights through ``pool`` slots, folded into a total; its smallest honest form.

    ``without`` names edges to leave out: ``"arrived"`` (the direct queue waits for the copy), ``"consumed"`` (the copy
    queue waits for the reader), ``"done"`` (the host waits before it reads).
    """

    def __init__(self, device: Device, layers: int = 5, pool: int = 2, width: int = 64, without: str = "") -> None:
        self.device, self.layers, self.pool, self.width, self.without = device, layers, pool, width, without

    def expected(self) -> list[float]:
        total = [0.0] * self.width
        for layer in range(self.layers):
            total = [2 * value + self._weight(layer, place) for place, value in enumerate(total)]
        return total

    def _weight(self, layer: int, place: int) -> float:
        return float((7 * layer + place) % 11 - 5)

    def run(self) -> list[float]:
        device, width, size = self.device, self.width, 4 * self.width
        host = device.create_upload_heap((self.layers + 1) * size, "host")
        slots = [device.create_buffer(size, f"slot[{k}]") for k in range(self.pool)]
        total, out = device.create_buffer(size, "total"), device.create_readback_heap(size, "out")
        arrived, consumed, done = (device.create_fence(name) for name in ("arrived", "consumed", "done"))
        for layer in range(self.layers):
            host.write(layer * size, floats(*(self._weight(layer, place) for place in range(width))))
        zeros = host.write(self.layers * size, bytes(size))
        with device.direct_queue.record("clear") as commands:
            commands.copy(total, zeros)
        for layer in range(min(self.pool, self.layers)):
            self._upload(layer, host, slots, arrived)
        for layer in range(self.layers):
            slot = slots[layer % self.pool]
            if self.without != "arrived":
                device.direct_queue.wait(arrived, layer + 1)
            slot.assume_common()
            with device.direct_queue.record(f"layer {layer}") as commands:
                commands.dispatch("fold", total=total.view("float32", (width,)), weight=slot.view("float32", (width,)))
            device.direct_queue.signal(consumed, layer + 1)
            if layer + self.pool < self.layers:
                if self.without != "consumed":
                    device.copy_queue.wait(consumed, layer + 1)
                self._upload(layer + self.pool, host, slots, arrived)
        with device.direct_queue.record("result") as commands:
            commands.copy(out, total)
        device.direct_queue.signal(done, 1)
        if self.without != "done":
            done.wait(1)
        return out.read("float32", (width,)).tolist()

    def _upload(self, layer: int, host: Any, slots: list[Any], arrived: Any) -> None:
        size = 4 * self.width
        with self.device.copy_queue.record(f"upload {layer}") as commands:
            commands.copy(slots[layer % self.pool], host.span(layer * size, size))
        self.device.copy_queue.signal(arrived, layer + 1)
