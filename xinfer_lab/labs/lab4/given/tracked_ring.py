"""`TrackedRing`: a slot ring whose user keeps the books of resource states."""

from __future__ import annotations

from typing import NoReturn

from xinfer_lab.labs.lab3.given.bare_ring import BareRing
from xinfer_lab.residency.weights import LayerSlot

__all__ = ["TrackedRing"]


class TrackedRing(BareRing):
    """A `BareRing` (see there for its attributes) that places steps, and keeps no books: `Buffer.assume_common` is its
    user's business.

    ``slot_of(step)`` is the slot of a running step, ``layer_of(step)`` the layer that it computes.
    ``slots[k].buffers`` are the slot's two
    buffers, attention and mlp; ``slots[k].holding(layer)`` is its memory as that layer's weights.
    """

    def layer_of(self, step: int) -> int:
        """The layer that ``step`` computes."""
        return step % self.layers

    def slot_of(self, step: int) -> LayerSlot:
        """The slot that ``step`` reads: step mod N."""
        return self.slots[step % len(self.slots)]

    def hand_over(self, slot: LayerSlot, layer: int) -> NoReturn:
        """Not here: it would keep the books for you. Always raises TypeError, which says what to call instead."""
        raise TypeError(
            "hand_over kept the books for you in Lab 3; here you keep them: call assume_common() on each of "
            "slot.buffers, "
            "then return slot.holding(layer)"
        )
