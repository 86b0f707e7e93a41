"""`BareRing`: what streaming keeps account of, but for resource states; and how decisions are put into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from xinfer_lab.device.device import Device
from xinfer_lab.qwen2.layout import LayerLayout
from xinfer_lab.residency.host import HostLayers
from xinfer_lab.residency.upload import CopyEngine
from xinfer_lab.residency.weights import LayerSlot, LayerWeights

__all__ = ["BareRing", "Part", "driven_by"]

Part = Callable[..., Any]


class BareRing:
    """N slots filled and read in turn, the engine that fills them, a fence for those that read them, three counters.

    ``device``: its ``direct_queue`` computes, its ``copy_queue`` uploads. ``layers`` is L, ``pool`` is N. ``slots`` are
    N `LayerSlot`; ``slots[k].ready`` is the value of ``engine.copied`` at which what was last uploaded there may be
    read. ``engine.upload(layer, slot)`` submits an upload on the copy queue. ``consumed`` is a fence of the direct
    queue: value v means that v steps have been computed.

    Steps run on over all passes: pass number times L plus layer. ``step`` is computed now, or next; ``uploaded`` is the
    next step to upload; ``end`` is the step after the last announced pass. Nothing here blocks the host, `close` aside.
    """

    def __init__(
        self, device: Device, layout: LayerLayout, dtype: torch.dtype, host: HostLayers, layers: int, pool: int
    ) -> None:
        if pool < 1:
            raise ValueError(f"a pool has at least 1 slot, not {pool}")
        self.device = device
        self.layers, self.pool = layers, pool
        self.slots = [LayerSlot(device, f"slot[{k}]", layout, dtype) for k in range(pool)]
        self.engine = self.make_engine(device, layout, host)
        self.consumed = device.create_fence(device.fresh_name("consumed"))
        self.step = self.uploaded = self.end = 0

    def make_engine(self, device: Device, layout: LayerLayout, host: HostLayers) -> CopyEngine:
        """The engine that fills the slots. A class built on this one may have another."""
        return CopyEngine(device, host)

    def begin_at(self, steps: int) -> None:
        """Bring books and fences of a new ring to where they are when ``steps`` steps have been done."""
        if steps:
            self.device.direct_queue.signal(self.consumed, steps)
            self.device.copy_queue.signal(self.engine.copied, steps)
            self.step = self.uploaded = self.end = steps

    @property
    def uploads(self) -> int:
        """Layers uploaded so far."""
        return self.engine.copied.last_submitted

    def close(self) -> None:
        """Block the host until nothing is in flight; give all memory back."""
        self.engine.close()
        self.consumed.wait(self.consumed.last_submitted)
        for slot in self.slots:
            slot.free()
        self.slots = []


def driven_by(
    base: type[BareRing],
    *,
    layer_of: Part,
    slot_of: Part,
    wait_until_read: Part,
    prefetch: Part,
    ensure: Part,
    release: Part,
) -> type[Any]:
    """A class of layer sources (see `LayerSource`) below ``base`` whose decisions are these functions, as methods of
    the ring.

    ``layer_of(step, layers)`` and ``slot_of(step, layers, pool)`` are numbers; on the ring, ``layer_of(step)`` is the
    layer's number and ``slot_of(step)`` the `LayerSlot` itself. ``wait_until_read(ring, step)``, ``prefetch(ring)``,
    ``ensure(ring, layer)`` and ``release(ring, layer)`` drive the queues.
    """

    class StreamingLayers(base):  # type: ignore[misc,valid-type]
        def layer_of(self, step: int) -> int:
            return int(layer_of(step, self.layers))

        def slot_of(self, step: int) -> LayerSlot:
            slot: LayerSlot = self.slots[slot_of(step, self.layers, len(self.slots))]
            return slot

        def wait_until_read(self, step: int) -> None:
            wait_until_read(self, step)

        def prefetch(self) -> None:
            prefetch(self)

        def begin(self, steps: int) -> None:
            self.end = self.step + steps * self.layers
            self.prefetch()

        def ensure(self, layer: int) -> LayerWeights:
            weights = ensure(self, layer)
            if not isinstance(weights, LayerWeights):
                raise TypeError(f"ensure has to return ring.hand_over(slot, layer), but returned {weights!r}")
            if weights.layer != layer:
                raise ValueError(
                    f"ensure({layer}) was asked for layer {layer}, but hands over layer {weights.layer}: "
                    "return ring.hand_over(slot, layer) with the layer that was asked for"
                )
            return weights

        def release(self, layer: int) -> None:
            release(self, layer)

    return StreamingLayers
