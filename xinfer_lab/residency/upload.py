"""`CopyEngine`: uploads layers on the copy queue and numbers them."""

from __future__ import annotations

from xinfer_lab.device.device import Device
from xinfer_lab.residency.host import HostLayers
from xinfer_lab.residency.weights import LayerSlot

__all__ = ["CopyEngine"]


class CopyEngine:
    """Submits one copy per group of a layer, as one command list, and one signal after it. Never blocks by itself.

    The fence ``copied`` counts uploads: upload number k has arrived once it has reached k.
    """

    def __init__(self, device: Device, host: HostLayers) -> None:
        self.device, self.host = device, host
        self.queue = device.copy_queue
        self.copied = device.create_fence(device.fresh_name("copied"))

    def upload(self, layer: int, slot: LayerSlot) -> int:
        """Copy ``layer`` into ``slot``; returns the value of `copied` at which it may be read.

        The caller has made the copy queue wait for the slot's last reader.
        """
        spans = self.host.stage(layer)
        with self.queue.record(f"upload layer {layer} to {slot.name}") as commands:
            for buffer, span in zip(slot.buffers, spans, strict=True):
                # A slot may be larger than the layer that it holds, where layers differ in size.
                commands.copy(buffer.span(0, span.size), span)
        value = self.copied.last_submitted + 1
        self.queue.signal(self.copied, value)
        self.host.copied(self.copied, value)
        slot.ready = value
        return value

    def close(self) -> None:
        """Block the host until every upload has arrived; then give the host memory back."""
        self.copied.wait(self.copied.last_submitted)
        self.host.close()
