"""The host's side of an upload of coded layers: as `xinfer_lab.residency.host`, but layers differ in size."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xinfer_lab.device.device import Device
from xinfer_lab.device.records import Source
from xinfer_lab.residency.codec.encoded import EncodedWeights
from xinfer_lab.residency.codec.format import encoded_name
from xinfer_lab.residency.host import KeptHost, Piece, RingHost
from xinfer_lab.residency.staging import StagingRing

__all__ = ["PinnedEncoded", "StagedEncoded", "encoded_source"]


def encoded_source(encoded: EncodedWeights, layer: int) -> Source:
    """All bytes of a coded layer."""
    return Source(encoded_name(layer), 0, encoded.layers[layer].nbytes)


class PinnedEncoded(KeptHost):
    """Coded layers in pinned host memory, written once. ``on_layer(i)`` is called after layer i has been read."""

    def __init__(
        self,
        device: Device,
        encoded: EncodedWeights,
        layers: Sequence[int],
        on_layer: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__()
        for layer in layers:
            heap = device.create_upload_heap(encoded.layers[layer].nbytes, f"host.encoded[{layer}]")
            self._pieces.append((Piece(0, 0, heap.write(0, encoded_source(encoded, layer))),))
            self._heaps.append(heap)
            if on_layer is not None:
                on_layer(layer)


class StagedEncoded(RingHost):
    """Coded layers staged one after the other through a small ring of pinned memory, ``depth`` of the largest.

    The host copies each layer whenever it is uploaded, and blocks in `stage` while a copy still uses the room.
    """

    def __init__(self, device: Device, encoded: EncodedWeights, layers: Sequence[int], depth: int = 2) -> None:
        largest = max(encoded.layers[layer].nbytes for layer in layers)
        super().__init__(StagingRing(device, depth * largest, name="staging.encoded"))
        self._encoded, self._layers = encoded, layers

    def stage(self, layer: int) -> tuple[Piece, ...]:
        """Copy the ``layer``-th of the layers into the ring."""
        source = encoded_source(self._encoded, self._layers[layer])
        return (Piece(0, 0, self._ring.heap.write(self._ring.allocate(source.size), source)),)
