"""A ring with the student's own parts in it: what Lab 2 built uploads, what Lab 3 built places steps."""

from __future__ import annotations

from typing import Any

from xinfer_lab.device.device import Device
from xinfer_lab.engine.parts import Choice
from xinfer_lab.labs.lab2.given.one_slot import LayerUploader
from xinfer_lab.labs.lab4.given.tracked_ring import TrackedRing
from xinfer_lab.qwen2.layout import LayerLayout
from xinfer_lab.residency.host import HostLayers, StagedLayers
from xinfer_lab.residency.staging import StagingRing
from xinfer_lab.residency.upload import CopyEngine
from xinfer_lab.residency.weights import LayerSlot

__all__ = ["fitted"]


def fitted(base: Any, choice: Choice) -> Any:
    """A class of layer sources below ``base``, a ring of Lab 3 or 4: uploads and, where ``base`` leaves it to
    `TrackedRing`, the place of a step are those of ``choice``.

    Its instances take None for the host's layers; layers that it is given and does not need are closed.
    """
    places = all(getattr(base, name, None) is getattr(TrackedRing, name) for name in ("layer_of", "slot_of"))

    class Fitted(base):  # type: ignore[misc]
        def make_engine(self, device: Device, layout: LayerLayout, host: HostLayers | None) -> Any:
            if not choice.has("copy_engine"):
                choice.used |= {"copy_engine": False, "staging_ring": False}
                return CopyEngine(device, host or StagedLayers(device, layout))
            if host is not None:
                host.close()
            make_ring = choice.take("staging_ring", lambda: StagingRing)
            # Room for two layers: with less the host, waiting for it, would hold up layers that could be computed.
            ring = make_ring(device, 2 * layout.nbytes)
            return _Noting(choice.take("copy_engine", lambda: CopyEngine)(device, ring, layout))

    if not places:
        return Fitted
    # None: the ring's own.
    layer_of, slot_of = (choice.take(name, lambda: None) for name in ("layer_of", "slot_of"))

    class Placed(Fitted):
        def layer_of(self, step: int) -> int:
            return int(layer_of(step, self.layers) if layer_of else super().layer_of(step))

        def slot_of(self, step: int) -> LayerSlot:
            slot: LayerSlot = (
                self.slots[slot_of(step, self.layers, len(self.slots))] if slot_of else super().slot_of(step)
            )
            return slot

    return Placed


class _Noting:
    """Lab 2's engine returns the value at which a layer has arrived; Lab 3's rings look for it at the slot."""

    def __init__(self, engine: LayerUploader) -> None:
        self._engine = engine
        self.copied, self.close = engine.copied, engine.close

    def upload(self, layer: int, slot: LayerSlot) -> int:
        slot.ready = self._engine.upload(layer, slot)
        return slot.ready
