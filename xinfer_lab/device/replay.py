"""Replay: submit a recorded stream to a device again, and compare what the host learns."""

from __future__ import annotations

from collections.abc import Callable

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.errors import KernelError, ReplayMismatch
from xinfer_lab.device.kernels import CLOSURE
from xinfer_lab.device.records import Dispatch, HostRead
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.device.tensors import digest_of

__all__ = ["replay"]


def replay(
    stream: CommandStream,
    device: Device,
    *,
    on_read: Callable[[int, HostRead, torch.Tensor], None] | None = None,
    compare_digests: bool = True,
) -> None:
    """Submit every record of ``stream`` to ``device``, whose sources must hold what the stream names.

    The stream's own inputs are put into the device's sources first (raises if those names hold other bytes there).
    ``on_read(index, record, bytes)`` sees each host read. Raises `ReplayMismatch` at the first read whose bytes differ
    from the recorded digest (streams of a simulation have none, and a simulation compares none), `KernelError` for a
    dispatched function, and whatever `Device.submit` raises. Indices are those of ``stream``.
    """
    for name, data in stream.inputs.items():
        device.sources.put(name, data)
    for index, record in enumerate(stream):
        if isinstance(record, Dispatch) and record.kernel.startswith(CLOSURE):
            # Not left to the device, which may know its own function by the same name.
            raise KernelError(
                f"record {index} dispatches {record.kernel!r}, a function that was passed for exploring: its code "
                "is not in the stream, so it cannot be replayed. Register it as a kernel and dispatch it by name."
            )
        queue = getattr(record, "queue", None)
        if queue is not None and queue not in device.queues:
            device.create_queue(queue)
        raw = device.submit(record)
        if not isinstance(record, HostRead):
            continue
        assert raw is not None
        if compare_digests and device.computes and record.digest and (seen := digest_of(raw)) != record.digest:
            raise ReplayMismatch(
                f"record {index}: the host read {record.src} and saw {seen} on {device.name}, but the stream was "
                f"recorded with {record.digest}; issued at {record.where or '?'}"
            )
        if on_read is not None:
            on_read(index, record, raw)
