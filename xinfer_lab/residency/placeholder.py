"""`PlaceholderLayers`: memory for one layer, without weights. Enough to learn what the rest of a model needs."""

from __future__ import annotations

from xinfer_lab.device.device import Device
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.weights import LayerSlot, LayerWeights, ModelWeights

__all__ = ["PlaceholderLayers"]


class PlaceholderLayers:
    """One slot, handed out as every layer; nothing is ever uploaded. For devices of sizes, which compute nothing."""

    uploads = 0

    def __init__(self, device: Device, weights: ModelWeights) -> None:
        self._slot = LayerSlot(device, "slot[0]", layer_layout(weights.config), weights.config.dtype)

    def begin(self, steps: int) -> None:
        """Nothing to upload."""

    def ensure(self, layer: int) -> LayerWeights:
        """The slot, seen as ``layer``."""
        return self._slot.holding(layer)

    def release(self, layer: int) -> None:
        """Nothing to refill."""

    def close(self) -> None:
        """Give the memory back."""
        self._slot.free()
