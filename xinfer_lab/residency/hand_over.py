"""The hidden state of a pass, and its way from card to card.

Every card has a buffer for it. A queue that takes the state over waits for the one that made it, then copies: 10 KB a
token, where a layer is hundreds of MB. A card's buffer is written again only after the state has come back from the
cards that read it, so no other fence is needed.
"""

from __future__ import annotations

import torch

from xinfer_lab.device.buffers import Buffer
from xinfer_lab.device.device import Device
from xinfer_lab.device.node_names import on_node
from xinfer_lab.device.records import View

__all__ = ["HiddenState"]


class HiddenState:
    """``size`` bytes on each card of ``device``. ``card`` is the one that has the state now."""

    def __init__(self, device: Device, size: int, dtype: torch.dtype) -> None:
        self._device, self.size, self._dtype = device, size, dtype
        self.card = 0
        self.buffers: list[Buffer] = [
            device.create_buffer(size, on_node("hidden", card), node=card) for card in range(len(device.nodes))
        ]
        self._handed = [
            device.create_fence(device.fresh_name(on_node("handed over", card))) for card in range(len(self.buffers))
        ]

    def begin(self, shape: tuple[int, ...]) -> View:
        """A pass begins on the first card, with a state of ``shape`` that is not written yet.

        No fence is needed: the host has waited for the end of the pass before.
        """
        if self.card:
            self.buffers[0].assume_common()
            self.card = 0
        return self.buffers[0].view(self._dtype, shape)

    def at(self, state: View) -> View:
        """``state`` where it is now."""
        return self.buffers[self.card].view(self._dtype, state.shape)

    def on(self, card: int, state: View) -> View:
        """``state`` on ``card``, whose direct queue may read it from here on; it is brought there if it is not."""
        if card == self.card:
            return self.at(state)
        source = self.at(state)
        self._take_over(card)
        self._device.nodes[card].direct_queue.copy(self.at(state), source, label=f"hand the state over to card {card}")
        return self.at(state)

    def _take_over(self, card: int) -> None:
        maker, taker = (self._device.nodes[number].direct_queue for number in (self.card, card))
        fence = self._handed[self.card]
        value = fence.last_submitted + 1
        maker.signal(fence, value)
        taker.wait(fence, value)
        # The cards that read this buffer have been heard of: the state came here by way of them.
        self.buffers[card].assume_common()
        self.card = card
