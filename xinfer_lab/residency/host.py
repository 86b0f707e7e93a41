"""The host's side of an upload: pinned memory that holds a layer's bytes when the copy queue comes for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from xinfer_lab.device.buffers import MappedHeap, UploadHeap
from xinfer_lab.device.device import Device
from xinfer_lab.device.fence import Fence
from xinfer_lab.device.records import Source, Span
from xinfer_lab.device.rollback import all_or_nothing
from xinfer_lab.qwen2.layout import LayerLayout, tensor_name
from xinfer_lab.residency.staging import StagingRing
from xinfer_lab.residency.weights import ModelWeights

__all__ = [
    "HostLayers",
    "KeptHost",
    "MappedLayers",
    "Piece",
    "PinnedLayers",
    "RingHost",
    "StagedLayers",
    "group_pieces",
]


@dataclass(frozen=True, slots=True)
class Piece:
    """Host bytes ``span`` that belong at ``offset`` of group number ``group`` of a layer's layout."""

    group: int
    offset: int
    span: Span


class HostLayers(Protocol):
    """Makes layers available in pinned host memory, one at a time, in the order in which they are copied."""

    def stage(self, layer: int) -> tuple[Piece, ...]:
        """All of ``layer`` but the padding, ready to be copied from; stays so until the copies are done."""
        ...

    def copied(self, fence: Fence, value: int) -> None:
        """The copies from what was staged last are done once ``fence`` has reached ``value``."""
        ...

    def close(self) -> None:
        """Give the host memory back; no copy from it may be in flight."""
        ...


class KeptHost:
    """Layers in heaps that hold them until the end: an upload gives the host nothing to do. Subclasses fill it."""

    def __init__(self) -> None:
        self._heaps: list[UploadHeap | MappedHeap] = []
        self._pieces: list[tuple[Piece, ...]] = []

    def stage(self, layer: int) -> tuple[Piece, ...]:
        """Where the ``layer``-th of the layers has been since the start."""
        return self._pieces[layer]

    def copied(self, fence: Fence, value: int) -> None:
        """Nothing to do: these bytes never change."""

    def close(self) -> None:
        """Give the host memory back."""
        for heap in self._heaps:
            heap.free()
        self._heaps, self._pieces = [], []


class RingHost:
    """Layers that pass through a small ring of pinned memory. Subclasses stage them."""

    def __init__(self, ring: StagingRing) -> None:
        self._ring = ring

    def copied(self, fence: Fence, value: int) -> None:
        """The room of the last staged layer is free once ``fence`` has reached ``value``."""
        self._ring.retire(fence, value)

    def close(self) -> None:
        """Give the ring back."""
        self._ring.close()


def group_pieces(layout: LayerLayout, heap: UploadHeap | MappedHeap, offset: int = 0) -> tuple[Piece, ...]:
    """A layer that lies in ``heap`` from ``offset`` on as it does on the device: its groups, one after the other."""
    pieces = []
    for number, group in enumerate(layout.groups):
        pieces.append(Piece(number, 0, heap.span(offset, group.nbytes)))
        offset += group.nbytes
    return tuple(pieces)


def _write(layout: LayerLayout, heap: UploadHeap, offset: int, layer: int) -> tuple[Piece, ...]:
    pieces = group_pieces(layout, heap, offset)
    for piece, group in zip(pieces, layout.groups, strict=True):
        for place in group.tensors:
            source = Source(tensor_name(layer, place.name), 0, place.nbytes)
            heap.write(piece.span.offset + place.offset, source)
    return pieces


class PinnedLayers(KeptHost):
    """Layers in pinned host memory, written once: a copy of the checkpoint, and no work for the host afterwards.

    ``layers``: how many, or which ones; then `stage` counts along that list. ``on_layer(i)`` is called after layer i
    has been read, for progress bars.
    """

    def __init__(
        self,
        device: Device,
        layout: LayerLayout,
        layers: int | Sequence[int],
        on_layer: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__()
        for layer in range(layers) if isinstance(layers, int) else layers:
            heap = device.create_upload_heap(layout.nbytes, f"host.layer[{layer}]")
            self._pieces.append(_write(layout, heap, 0, layer))
            self._heaps.append(heap)
            if on_layer is not None:
                on_layer(layer)


class StagedLayers(RingHost):
    """Layers staged one after the other through a small ring of pinned memory: little of it, but the host copies each
    time.

    ``depth``: how many layers the ring has room for (at least 1). The host blocks in `stage` until a copy that still
    uses the room has finished. ``layers``: which layers `stage` counts along (default: all).
    """

    def __init__(
        self, device: Device, layout: LayerLayout, depth: int = 2, layers: Sequence[int] | None = None
    ) -> None:
        super().__init__(StagingRing(device, depth * layout.nbytes, name="staging.layers"))
        self._layout, self._layers = layout, layers

    def stage(self, layer: int) -> tuple[Piece, ...]:
        """Copy the ``layer``-th of the layers into the ring."""
        layer = layer if self._layers is None else self._layers[layer]
        return _write(self._layout, self._ring.heap, self._ring.allocate(self._layout.nbytes), layer)


class MappedLayers(KeptHost):
    """Layers where they are: in sources that are mapped whole, such as the checkpoint's files, each of them once.

    They lie there in another order than on the device, so each tensor is a piece. Nothing is copied and nothing is read
    before it is needed. ``layers``: how many, or which ones, which `stage` counts along. Raises what
    `Device.map_upload_heap` does, with nothing left mapped.
    """

    def __init__(self, device: Device, layout: LayerLayout, weights: ModelWeights, layers: int | Sequence[int]) -> None:
        super().__init__()
        heaps: dict[str, MappedHeap] = {}
        with all_or_nothing(device):
            for layer in range(layers) if isinstance(layers, int) else layers:
                pieces = []
                for group, tensors in enumerate(layout.groups):
                    for place in tensors.tensors:
                        source = weights.locate(tensor_name(layer, place.name))
                        if source.name not in heaps:
                            heaps[source.name] = device.map_upload_heap(source.name, f"host.{source.name}")
                        span = heaps[source.name].span(source.offset, source.size)
                        pieces.append(Piece(group, place.offset, span))
                self._pieces.append(tuple(pieces))
        self._heaps += heaps.values()
