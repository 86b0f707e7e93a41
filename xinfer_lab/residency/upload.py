"""`CopyEngine`: uploads layers on the copy queue and numbers them."""

from __future__ import annotations

from collections.abc import Sequence

from xinfer_lab.device.device import Device
from xinfer_lab.device.queue import CommandList, CommandQueue
from xinfer_lab.residency.host import HostLayers, Piece
from xinfer_lab.residency.kept import KeptLists
from xinfer_lab.residency.relay import Part, Relay
from xinfer_lab.residency.weights import LayerSlot

__all__ = ["CopyEngine"]


class CopyEngine:
    """Submits one copy per group of a layer (or per tensor, out of a mapped file), as one command list, and one signal
    after it. Never blocks by itself.

    The fence ``copied`` counts uploads: upload number k has arrived once it has reached k. ``numbers``: what layers are
    called in labels, where they are some of a model's; ``relay``: how one of them comes over other links too.
    """

    def __init__(
        self,
        device: Device,
        host: HostLayers,
        numbers: Sequence[int] | None = None,
        relay: Relay | None = None,
    ) -> None:
        self.device, self.host, self._numbers, self._relay = device, host, numbers, relay
        self.queue = device.copy_queue
        self.copied = device.create_fence(device.fresh_name("copied"))
        self._lists = KeptLists(self.queue)
        self._whole: dict[str, int] = {}

    def upload(self, layer: int, slot: LayerSlot) -> int:
        """Copy ``layer`` into ``slot``; returns the value of `copied` at which it may be read.

        The caller has made the copy queue wait for the slot's last reader.
        """
        pieces = self.host.stage(layer)
        relay = self._relay if self._relay is not None and self._relay.layer == layer else None
        parts = relay.send(_parts(pieces, slot)) if relay is not None else None

        def fill(commands: CommandList) -> None:
            for buffer, offset, span in _parts(pieces, slot) if parts is None else parts:
                commands.copy(buffer.span(offset, span.size), span)

        number = layer if self._numbers is None else self._numbers[layer]
        self._lists.run((layer, slot.name, pieces), f"upload layer {number} to {slot.name}", fill)
        value = self.copied.last_submitted + 1
        self.queue.signal(self.copied, value)
        self.host.copied(self.copied, value)
        if relay is not None:
            self._whole[slot.name] = relay.take_over(self.copied, value)
        slot.ready = value
        return value

    def wait_for_relay(self, queue: CommandQueue, layer: int, slot: LayerSlot) -> None:
        """Let ``queue`` wait for what comes of ``layer`` over other links, into ``slot``, if anything does."""
        if self._relay is not None and self._relay.layer == layer:
            self._relay.let_read(queue, self._whole[slot.name])

    def close(self) -> None:
        """Block the host until every upload has arrived; then give the host memory back."""
        self.copied.wait(self.copied.last_submitted)
        if self._relay is not None:
            self._relay.close()
        self._lists.clear()
        self.host.close()


def _parts(pieces: Sequence[Piece], slot: LayerSlot) -> list[Part]:
    """Where in ``slot`` each of a layer's ``pieces`` belongs. A slot may be larger than the layer that it holds, where
    layers differ in size."""
    return [(slot.buffers[piece.group], piece.offset, piece.span) for piece in pieces]
