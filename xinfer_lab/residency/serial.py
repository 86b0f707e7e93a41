"""`SerialLayers`: upload, compute, upload, compute. Right, small, and slow: nothing overlaps.

It is here to be compared with: what streaming gains over it is overlap, and what pinned memory gains is not.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.qwen2.layout import LayerLayout
from xinfer_lab.residency.host import HostLayers
from xinfer_lab.residency.source import LayerOrder
from xinfer_lab.residency.upload import CopyEngine
from xinfer_lab.residency.weights import LayerSlot, LayerWeights

__all__ = ["SerialLayers"]


class SerialLayers:
    """One slot. Each layer is uploaded when it is asked for: a pass takes the sum of its transfers and its
    computing.
    """

    def __init__(
        self,
        device: Device,
        layout: LayerLayout,
        dtype: torch.dtype,
        host: HostLayers,
        layers: int,
        numbers: Sequence[int] | None = None,
    ) -> None:
        self._device = device
        self._order = LayerOrder(layers)
        self._slot = LayerSlot(device, "slot[0]", layout, dtype)
        self._engine = CopyEngine(device, host, numbers)
        self._consumed = device.create_fence(device.fresh_name("consumed"))

    @property
    def uploads(self) -> int:
        """Layers uploaded so far."""
        return self._engine.copied.last_submitted

    def begin(self, steps: int) -> None:
        """Nothing goes out before it is asked for."""
        self._order.begin(steps)

    def ensure(self, layer: int) -> LayerWeights:
        """Upload ``layer`` once the layer before it has been computed; the direct queue waits for it."""
        step = self._order.ensure(layer)
        if step > 0:
            self._device.copy_queue.wait(self._consumed, step)
        ready = self._engine.upload(layer, self._slot)
        self._device.direct_queue.wait(self._engine.copied, ready)
        for buffer in self._slot.buffers:
            buffer.assume_common()
        return self._slot.holding(layer)

    def release(self, layer: int) -> None:
        """Signal that the slot may be overwritten."""
        step = self._order.release(layer)
        self._device.direct_queue.signal(self._consumed, step + 1)

    def close(self) -> None:
        """Block the host until nothing is in flight; give all memory back. May be called again."""
        self._engine.close()
        self._consumed.wait(self._consumed.last_submitted)
        self._slot.free()
