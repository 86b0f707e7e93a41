"""`PlannedLayers`: some layers stay resident, the rest stream. A pass moves only the bytes that are not there."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.device.records import Source
from xinfer_lab.device.rollback import all_or_nothing
from xinfer_lab.qwen2.layout import LayerLayout, tensor_name
from xinfer_lab.residency.host import HostLayers
from xinfer_lab.residency.load import Uploader
from xinfer_lab.residency.source import LayerOrder
from xinfer_lab.residency.streaming import StreamingLayers
from xinfer_lab.residency.weights import LayerSlot, LayerWeights

__all__ = ["PlannedLayers", "spread"]


def spread(layers: int, streamed: int) -> tuple[int, ...]:
    """Which ``streamed`` of ``layers`` layers to stream: as far apart as they can be, so that each upload has time
    to hide.
    """
    if not 0 <= streamed <= layers:
        raise ValueError(f"{streamed} of {layers} layers cannot be streamed")
    return tuple((2 * k + 1) * layers // (2 * streamed) for k in range(streamed))


class PlannedLayers:
    """Of ``layers`` layers, ``streamed`` (in growing order) pass through ``pool`` slots; all others stay in device
    memory.

    ``host`` stages the streamed layers by their place in that list. The uploads of one pass go on into the next, as
    with `StreamingLayers`, which does the streaming here: a cyclic scan would make any cache that evicts useless, a
    fixed resident set is what Belady's rule comes to. ``numbers``: what the layers are called in the checkpoint, where
    they are some of a model's.
    """

    def __init__(
        self,
        device: Device,
        layout: LayerLayout,
        dtype: torch.dtype,
        host: HostLayers,
        layers: int,
        streamed: Sequence[int],
        pool: int,
        numbers: Sequence[int] | None = None,
    ) -> None:
        if not streamed or list(streamed) != sorted(set(streamed)) or not 0 <= streamed[0] <= streamed[-1] < layers:
            raise ValueError(
                f"the streamed layers must be some of 0 to {layers - 1}, in growing order, not {list(streamed)}"
            )
        self._device = device
        self._order = LayerOrder(layers)
        self._place = {layer: place for place, layer in enumerate(streamed)}
        with all_or_nothing(device):
            self._resident = {
                layer: LayerSlot(device, f"layer[{layer}]", layout, dtype)
                for layer in range(layers)
                if layer not in self._place
            }
            self._load(device, layout, range(layers) if numbers is None else numbers)
            called = None if numbers is None else [numbers[layer] for layer in streamed]
            self._streaming = StreamingLayers(device, layout, dtype, host, len(streamed), pool, called)

    def _load(self, device: Device, layout: LayerLayout, numbers: Sequence[int]) -> None:
        uploader = Uploader(device, max(place.nbytes for group in layout.groups for place in group.tensors))
        for layer, slot in self._resident.items():
            for buffer, group in zip(slot.buffers, layout.groups, strict=True):
                for place in group.tensors:
                    uploader.upload(
                        buffer, place.offset, Source(tensor_name(numbers[layer], place.name), 0, place.nbytes)
                    )
        uploader.finish(*(buffer for slot in self._resident.values() for buffer in slot.buffers))

    @property
    def uploads(self) -> int:
        """Layers uploaded by running; the resident ones are not counted."""
        return self._streaming.uploads

    def begin(self, steps: int) -> None:
        """Announce ``steps`` passes; fills the slots that are free."""
        self._order.begin(steps)
        self._streaming.begin(steps)

    def ensure(self, layer: int) -> LayerWeights:
        """A resident layer's own memory, or the slot that the layer streams through once its copy has arrived."""
        self._order.ensure(layer)
        if (slot := self._resident.get(layer)) is not None:
            return slot.holding(layer)
        return dataclasses.replace(self._streaming.ensure(self._place[layer]), layer=layer)

    def release(self, layer: int) -> None:
        """Refill the slot of a streamed layer behind its last read."""
        self._order.release(layer)
        if layer in self._place:
            self._streaming.release(self._place[layer])

    def close(self) -> None:
        """Block the host until nothing is in flight; give all memory back. May be called again."""
        self._streaming.close()
        self._device.wait_idle()
        for slot in self._resident.values():
            slot.free()
        self._resident = {}
