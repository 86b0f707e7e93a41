"""All or nothing: what a block allocated is freed again if the block raises."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from xinfer_lab.device.buffers import Buffer
from xinfer_lab.device.device import Device

__all__ = ["all_or_nothing"]


@contextlib.contextmanager
def all_or_nothing(device: Device) -> Iterator[None]:
    """Free every buffer and heap that the ``with`` block created on ``device`` if it raises; the error goes on.

    The host waits for all queues first: no work of theirs may be in flight on memory that is freed.
    """
    before = set(device.rules.buffers)
    try:
        yield
    except BaseException:
        device.wait_idle()
        for name, allocation in list(device.rules.buffers.items()):
            if name not in before:
                Buffer(device, name, allocation.size).free()
        raise
