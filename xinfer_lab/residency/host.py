"""The host's side of an upload: pinned memory that holds a layer's bytes when the copy queue comes for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from xinfer_lab.device.buffers import UploadHeap
from xinfer_lab.device.device import Device
from xinfer_lab.device.fence import Fence
from xinfer_lab.device.records import Source, Span
from xinfer_lab.qwen2.layout import GroupLayout, LayerLayout, tensor_name
from xinfer_lab.residency.staging import StagingRing

__all__ = ["HostLayers", "PinnedLayers", "StagedLayers"]


class HostLayers(Protocol):
    """Makes layers available in pinned host memory, one at a time, in the order in which they are copied."""

    def stage(self, layer: int) -> tuple[Span, ...]:
        """Host bytes of each group of ``layer``, ready to be copied from; stays so until the copies are done."""
        ...

    def copied(self, fence: Fence, value: int) -> None:
        """The copies from what was staged last are done once ``fence`` has reached ``value``."""
        ...

    def close(self) -> None:
        """Give the host memory back; no copy from it may be in flight."""
        ...


def _fill(heap: UploadHeap, offset: int, layer: int, group: GroupLayout) -> None:
    for place in group.tensors:
        heap.write(offset + place.offset, Source(tensor_name(layer, place.name), 0, place.nbytes))


class PinnedLayers:
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
        self._heaps = []
        self._spans = []
        for layer in range(layers) if isinstance(layers, int) else layers:
            heap = device.create_upload_heap(layout.nbytes, f"host.layer[{layer}]")
            spans, offset = [], 0
            for group in layout.groups:
                _fill(heap, offset, layer, group)
                spans.append(heap.span(offset, group.nbytes))
                offset += group.nbytes
            self._heaps.append(heap)
            self._spans.append(tuple(spans))
            if on_layer is not None:
                on_layer(layer)

    def stage(self, layer: int) -> tuple[Span, ...]:
        """Where the ``layer``-th of the layers has been since the start."""
        return self._spans[layer]

    def copied(self, fence: Fence, value: int) -> None:
        """Nothing to do: these bytes are never written again."""

    def close(self) -> None:
        """Give the host memory back."""
        for heap in self._heaps:
            heap.free()
        self._heaps, self._spans = [], []


class StagedLayers:
    """Layers staged one after the other through a small ring of pinned memory: little of it, but the host copies each
    time.

    ``depth``: how many layers the ring has room for (at least 1). The host blocks in `stage` until a copy that still
    uses the room has finished. ``layers``: which layers `stage` counts along (default: all).
    """

    def __init__(
        self, device: Device, layout: LayerLayout, depth: int = 2, layers: Sequence[int] | None = None
    ) -> None:
        self._layout, self._layers = layout, layers
        self._ring = StagingRing(device, depth * layout.nbytes, name="staging.layers")

    def stage(self, layer: int) -> tuple[Span, ...]:
        """Copy the ``layer``-th of the layers into the ring."""
        layer = layer if self._layers is None else self._layers[layer]
        spans = []
        offset = self._ring.allocate(self._layout.nbytes)
        for group in self._layout.groups:
            _fill(self._ring.heap, offset, layer, group)
            spans.append(self._ring.heap.span(offset, group.nbytes))
            offset += group.nbytes
        return tuple(spans)

    def copied(self, fence: Fence, value: int) -> None:
        """The room of the last staged layer is free once ``fence`` has reached ``value``."""
        self._ring.retire(fence, value)

    def close(self) -> None:
        """Give the ring back."""
        self._ring.close()
