"""`OneSlot`: what serial streaming keeps account of. It decides nothing.

`ensure` and `release` are for the class built on it.
"""

from __future__ import annotations

from typing import Protocol

from xinfer_lab.device.device import Device
from xinfer_lab.device.fence import Fence
from xinfer_lab.residency.weights import LayerSlot, LayerWeights

__all__ = ["LayerUploader", "OneSlot"]


class LayerUploader(Protocol):
    """Uploads layers on the copy queue; `CopyEngine` is one."""

    copied: Fence

    def upload(self, layer: int, slot: LayerSlot) -> int:
        """Submit the upload of ``layer`` into ``slot``; the value of `copied` at which it may be read."""
        ...

    def close(self) -> None:
        """Block the host until every upload has arrived; give the host memory back."""
        ...


class OneSlot:
    """One slot that is filled and read in turn, the engine that fills it, a fence for the one that reads it, and a
    counter.

    ``device``: its ``direct_queue`` computes, its ``copy_queue`` uploads. ``engine.upload(layer, slot)`` submits an
    upload on the copy queue and returns the value that the fence ``engine.copied`` reaches when it has arrived.
    ``consumed`` is a fence of the direct queue: value v means that v layers have been computed. ``layers`` is how
    many a pass has; ``step`` counts the layers computed so far over all passes and starts at 0. Nothing here blocks
    the host, `close` aside.
    """

    def __init__(self, device: Device, engine: LayerUploader, slot: LayerSlot, layers: int) -> None:
        self.device, self.engine, self.slot, self.layers = device, engine, slot, layers
        self.consumed = device.create_fence(device.fresh_name("consumed"))
        self.step = 0

    @property
    def uploads(self) -> int:
        """Layers uploaded so far."""
        return self.engine.copied.last_submitted

    def begin(self, steps: int) -> None:
        """A run of ``steps`` passes starts. Nothing goes out before it is asked for."""

    def ensure(self, layer: int) -> LayerWeights:
        """From here on the direct queue may read the weights of ``layer``."""
        raise NotImplementedError("ensure is for the class that is built on this one")

    def release(self, layer: int) -> None:
        """The direct queue has been given its last read of the weights of ``layer`` in this pass."""
        raise NotImplementedError("release is for the class that is built on this one")

    def hand_over(self, layer: int) -> LayerWeights:
        """The slot's memory as the weights of ``layer``, for the direct queue, which has been told to wait for them.

        Also keeps the books of resource states: the buffers are in COMMON once the queue is past that wait.
        """
        for buffer in self.slot.buffers:
            buffer.assume_common()
        return self.slot.holding(layer)

    def close(self) -> None:
        """Block the host until nothing is in flight; give all memory back."""
        self.engine.close()
        self.consumed.wait(self.consumed.last_submitted)
        self.slot.free()
