"""`ResidentLayers`: every layer stays in device memory. Every other residency must equal it byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.records import Source
from xinfer_lab.qwen2.layout import LayerLayout, tensor_name
from xinfer_lab.residency.load import Uploader
from xinfer_lab.residency.source import LayerOrder
from xinfer_lab.residency.weights import LayerSlot, LayerWeights

__all__ = ["ResidentLayers"]


class ResidentLayers:
    """All of ``layers``, uploaded once when created (which blocks the host until they have arrived).

    ``layers``: how many, or which ones, which `ensure` then counts along. ``layout``: that of every layer, or one for
    each of them.
    """

    def __init__(
        self,
        device: Device,
        layout: LayerLayout | Sequence[LayerLayout],
        dtype: torch.dtype,
        layers: int | Sequence[int],
        on_layer: Callable[[int], None] | None = None,
    ) -> None:
        self._device = device
        numbers = range(layers) if isinstance(layers, int) else layers
        self._order = LayerOrder(len(numbers))
        layouts = [layout] * len(numbers) if isinstance(layout, LayerLayout) else list(layout)
        self._layers = [
            LayerSlot(device, f"layer[{layer}]", one, dtype) for layer, one in zip(numbers, layouts, strict=True)
        ]
        places = (place for one in layouts for group in one.groups for place in group.tensors)
        uploader = Uploader(device, max(place.nbytes for place in places))
        for layer, slot, one in zip(numbers, self._layers, layouts, strict=True):
            for buffer, group in zip(slot.buffers, one.groups, strict=True):
                for place in group.tensors:
                    uploader.upload(buffer, place.offset, Source(tensor_name(layer, place.name), 0, place.nbytes))
            if on_layer is not None:
                on_layer(layer)
        uploader.finish(*(buffer for slot in self._layers for buffer in slot.buffers))

    @property
    def uploads(self) -> int:
        """Layers uploaded by running: none."""
        return 0

    def begin(self, steps: int) -> None:
        """Nothing to upload."""
        self._order.begin(steps)

    def ensure(self, layer: int) -> LayerWeights:
        """The layer's own memory; it arrived before the constructor returned."""
        self._order.ensure(layer)
        return self._layers[layer].holding(layer)

    def release(self, layer: int) -> None:
        """Nothing to refill."""
        self._order.release(layer)

    def close(self) -> None:
        """Block the host until the queues are idle, and give the memory back. May be called again."""
        self._device.wait_idle()
        for slot in self._layers:
            slot.free()
        self._layers = []
