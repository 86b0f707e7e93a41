"""Errors between a program and a device. Messages say what was wanted, what was there, what to do next."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "BufferRangeError",
    "CudaUnavailable",
    "DeviceClosed",
    "DeviceError",
    "EarlyWait",
    "FenceError",
    "HazardError",
    "KernelError",
    "OutOfDeviceMemory",
    "OutOfHostMemory",
    "ReplayMismatch",
    "StateError",
    "StreamError",
    "format_bytes",
]


def format_bytes(count: float) -> str:
    """``count`` bytes for people: ``1536`` -> ``1.50 KiB``. Below 1 KiB the exact number of bytes."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(size) < 1024 or unit == "TiB":
            return f"{int(size)} B" if unit == "B" else f"{size:.2f} {unit}"
        size /= 1024
    raise AssertionError("unreachable")


class DeviceError(Exception):
    """Base of every error of this package's devices; catching it catches them all."""


class DeviceClosed(DeviceError):
    """The device was closed: it takes no more commands."""


class BufferRangeError(DeviceError):
    """A buffer is unknown, was freed, has the wrong heap, or is smaller than the range that was asked for."""


class FenceError(DeviceError):
    """A fence was signalled by a second queue, or with a value that does not grow."""


class EarlyWait(FenceError):
    """A wait names a fence value that no queue has been asked to signal yet."""


class KernelError(DeviceError):
    """A kernel is not registered, or its operands do not fit what it declares."""


class StateError(DeviceError):
    """A resource state rule of D3D12 is broken: a barrier's ``before`` is not the state that the buffer is in."""


class HazardError(DeviceError):
    """A command would race with another; raised before the command is issued where the device was asked to raise."""


class StreamError(DeviceError):
    """A command stream is malformed: it does not fit the schema, or names something that it never created."""


class ReplayMismatch(DeviceError):
    """On replay the host read other bytes than the recorded stream says it did."""


class CudaUnavailable(DeviceError):
    """A CUDA device was asked for and there is none that can be used."""


class OutOfHostMemory(DeviceError):
    """This machine lacks the memory that a buffer needs: an emulated device keeps all of them in host memory."""


class OutOfDeviceMemory(DeviceError):
    """An allocation does not fit the device memory budget.

    ``requested``, ``used`` and ``budget`` are bytes; ``holders`` maps each living default-heap buffer (and
    ``"kernel workspace"``) to the bytes it holds, largest first.
    """

    def __init__(self, what: str, requested: int, used: int, budget: int, holders: Mapping[str, int]) -> None:
        self.requested, self.used, self.budget = requested, used, budget
        self.holders = dict(sorted(holders.items(), key=lambda item: (-item[1], item[0])))
        top = ", ".join(f"{name} {format_bytes(size)}" for name, size in list(self.holders.items())[:6])
        more = f" and {len(self.holders) - 6} more" if len(self.holders) > 6 else ""
        super().__init__(
            f"{what} needs {format_bytes(requested)} of device memory, but {format_bytes(used)} of the budget of "
            f"{format_bytes(budget)} are in use, so {format_bytes(max(0, budget - used))} are free. "
            f"Held by: {top or 'nothing'}{more}. Free something, use fewer slots or a smaller context, or raise "
            "the budget."
        )
