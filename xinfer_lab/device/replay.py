"""Replay: submit a recorded stream to a device again, and compare what the host learns."""

from __future__ import annotations

from collections.abc import Callable

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.errors import ReplayMismatch
from xinfer_lab.device.records import HostRead
from xinfer_lab.device.stream import CommandStream

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
    ``on_read(index, record, bytes)`` sees each host read. Raises `ReplayMismatch` at the first read whose bytes differ from
    the recorded digest (streams of a simulation have none), and whatever `Device.submit` raises.
    """
    for name, data in stream.inputs.items():
        device.sources.put(name, data)
    for record in stream:
        queue = getattr(record, "queue", None)
        if queue is not None and queue not in device.queues:
            device.create_queue(queue)
        raw = device.submit(record)
        if isinstance(record, HostRead):
            assert raw is not None
            replayed = device.stream[len(device.stream) - 1]
            assert isinstance(replayed, HostRead)
            if compare_digests and record.digest and replayed.digest and replayed.digest != record.digest:
                raise ReplayMismatch(
                    f"record {len(device.stream) - 1}: the host read {record.src} and saw {replayed.digest} on "
                    f"{device.name}, but the stream was recorded with {record.digest}; issued at {record.where or '?'}"
                )
            if on_read is not None:
                on_read(len(device.stream) - 1, record, raw)
