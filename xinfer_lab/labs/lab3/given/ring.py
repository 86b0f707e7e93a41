"""`SlotRing`: what streaming keeps account of. It decides nothing; the decisions are parts that are put into it."""

from __future__ import annotations

from xinfer_lab.labs.lab3.given.bare_ring import BareRing, Part, driven_by
from xinfer_lab.residency.weights import LayerSlot, LayerWeights

__all__ = ["SlotRing", "streaming_from"]


class SlotRing(BareRing):
    """A `BareRing` (see there for its attributes) that keeps the books of resource states besides: Lab 4 is about
    those, and builds on the bare one."""

    def hand_over(self, slot: LayerSlot, layer: int) -> LayerWeights:
        """The slot's memory as the weights of ``layer``, for the direct queue, which has been told to wait for them.

        Also keeps the books of resource states: the buffers are in COMMON once the queue is past that wait.
        """
        for buffer in slot.buffers:
            buffer.assume_common()
        return slot.holding(layer)


def streaming_from(**parts: Part) -> type[SlotRing]:
    """A class of layer sources (see `LayerSource`) whose decisions are these functions, as methods of the ring: see
    `driven_by`."""
    made: type[SlotRing] = driven_by(SlotRing, **parts)
    return made
