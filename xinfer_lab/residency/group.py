"""Layers over several cards: layer i lives on card i mod G, so that G links bring layers at once.

A residency for one card is written once. Here each card gets one for its own share of the layers, counted along that
share; the forward pass goes from card to card and hands the hidden state over, which is small beside a layer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import cast

from xinfer_lab.device.device import Device
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.source import LayerSource
from xinfer_lab.residency.weights import LayerWeights

__all__ = ["GroupLayers", "card_of", "over_cards", "place_of"]

MakeShare = Callable[[Device, Sequence[int]], LayerSource]
"""Makes the source of some layers, given by their numbers, on one card; it counts along them."""


def card_of(device: Device, layer: int) -> Device:
    """The card of ``device`` that ``layer`` lives on: ``device`` itself where it is one."""
    return device if len(device.nodes) == 1 else cast(Device, device.nodes[layer % len(device.nodes)])


def place_of(layer: int, cards: int) -> tuple[int, int]:
    """The card that ``layer`` lives on, and which of its layers it is there."""
    return layer % cards, layer // cards


def over_cards(device: Device, layers: int, make: MakeShare) -> LayerSource:
    """The source of ``layers`` layers on all cards of ``device``. Raises `RequestError` for more cards than layers."""
    cards = len(device.nodes)
    if cards == 1:
        return make(device, range(layers))
    if cards > layers:
        raise RequestError(f"{layers} layers cannot be spread over {cards} cards; use {layers} cards or fewer")
    return GroupLayers([make(card_of(device, card), range(card, layers, cards)) for card in range(cards)])


class GroupLayers:
    """The sources of G cards' shares as one: layer i is layer i // G of share i mod G."""

    def __init__(self, shares: Sequence[LayerSource]) -> None:
        self._shares = list(shares)

    @property
    def uploads(self) -> int:
        """Layers uploaded since the source was made, over all links."""
        return sum(share.uploads for share in self._shares)

    def begin(self, steps: int) -> None:
        """A run of ``steps`` passes starts on every card; first uploads may go out over all links."""
        for share in self._shares:
            share.begin(steps)

    def ensure(self, layer: int) -> LayerWeights:
        """From here on the direct queue of the layer's card may read its weights."""
        card, place = self._find(layer)
        return dataclasses.replace(self._shares[card].ensure(place), layer=layer)

    def release(self, layer: int) -> None:
        """The direct queue of the layer's card has been given its last read of them in this pass."""
        card, place = self._find(layer)
        self._shares[card].release(place)

    def close(self) -> None:
        """Drain every card, and give its memory back. May be called again."""
        for share in self._shares:
            share.close()

    def _find(self, layer: int) -> tuple[int, int]:
        return place_of(layer, len(self._shares))
