"""`StreamingLayers`: N slots, a copy queue that uploads ahead, and a direct queue that computes meanwhile.

Two fences are enough. The direct queue waits for ``copied`` before it reads a slot; the copy queue waits for
``consumed`` before it overwrites one. The host only counts; with pinned layers it never waits, so uploads can run
ahead.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.qwen2.layout import LayerLayout
from xinfer_lab.residency.host import HostLayers
from xinfer_lab.residency.relay import Relay
from xinfer_lab.residency.source import LayerOrder
from xinfer_lab.residency.upload import CopyEngine
from xinfer_lab.residency.weights import LayerSlot, LayerWeights

__all__ = ["StreamingLayers"]


class StreamingLayers:
    """Layers stream through ``pool`` slots; as soon as a slot's layer is done, the layer ``pool`` steps ahead is
    uploaded to it.

    Uploads are numbered by the running step (pass number times L plus layer), and slot = step mod pool. By layer number
    the ring would break at the token boundary whenever the pool does not divide L. Each step is uploaded exactly once;
    a run that ends before its announced passes leaves at most ``pool`` uploads for passes that may follow. ``numbers``:
    what the layers are called, where they are some of a model's; ``relay``: how one of them comes over other links too.
    """

    def __init__(
        self,
        device: Device,
        layout: LayerLayout,
        dtype: torch.dtype,
        host: HostLayers,
        layers: int,
        pool: int,
        numbers: Sequence[int] | None = None,
        relay: Relay | None = None,
    ) -> None:
        if pool < 1:
            raise ValueError(f"a pool has at least 1 slot, not {pool}")
        self._device = device
        self._order = LayerOrder(layers)
        self._slots = [LayerSlot(device, f"slot[{k}]", layout, dtype) for k in range(pool)]
        self._engine = CopyEngine(device, host, numbers, relay)
        self._consumed = device.create_fence(device.fresh_name("consumed"))
        self._uploaded = 0

    @property
    def uploads(self) -> int:
        """Layers uploaded so far."""
        return self._engine.copied.last_submitted

    def begin(self, steps: int) -> None:
        """Announce ``steps`` passes; fills the slots that are free."""
        self._order.begin(steps)
        self._prefetch()

    def ensure(self, layer: int) -> LayerWeights:
        """The direct queue waits for the layer's copy; its buffers are in COMMON then, and the tracker is told so."""
        slot = self._slots[self._order.ensure(layer) % len(self._slots)]
        self._device.direct_queue.wait(self._engine.copied, slot.ready)
        self._engine.wait_for_relay(self._device.direct_queue, layer, slot)
        for buffer in slot.buffers:
            buffer.assume_common()
        return slot.holding(layer)

    def release(self, layer: int) -> None:
        """Signal that the slot has been read, and refill it behind that signal."""
        step = self._order.release(layer)
        self._device.direct_queue.signal(self._consumed, step + 1)
        self._prefetch()

    def _prefetch(self) -> None:
        pool = len(self._slots)
        while self._uploaded < min(self._order.step + pool, self._order.end):
            step = self._uploaded
            if step >= pool:
                # Write after read: the slot still holds step - pool until the direct queue is past it.
                self._device.copy_queue.wait(self._consumed, step - pool + 1)
            self._engine.upload(step % self._order.layers, self._slots[step % pool])
            self._uploaded += 1

    def close(self) -> None:
        """Block the host until nothing is in flight; give all memory back. May be called again."""
        self._engine.close()
        self._consumed.wait(self._consumed.last_submitted)
        for slot in self._slots:
            slot.free()
        self._slots = []
