"""A layer's bytes over several links: where G cards do not divide the layers, the odd ones come over all of them.

Of L layers over G cards, r = L mod G are left when each card has had as many as every other. Alone, their links would
bring them while those of the other cards rest, and a pass would take ceil(L / G) layers' time. So of an odd layer r / G
comes over its own card's link, and 1 / G over each of the G - r links that rest: into a landing buffer on that card,
and from there to the layer's slot, card to card, on a queue of its own. Every link then brings L / G layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xinfer_lab.device.buffers import Buffer
from xinfer_lab.device.device import Device
from xinfer_lab.device.fence import Fence
from xinfer_lab.device.node import Node
from xinfer_lab.device.queue import CommandQueue
from xinfer_lab.device.records import Span
from xinfer_lab.device.stream_rules import BUFFER_ALIGNMENT
from xinfer_lab.residency.group import place_of

__all__ = ["Relay", "relay_of"]

Part = tuple[Buffer, int, Span]
"""A buffer of a slot, an offset there, and the host bytes that belong there."""


def relay_of(card: Device, layers: Sequence[int], total: int, size: int) -> Relay | None:
    """The relay of the odd one among ``layers``, a card's share of ``total`` layers of at most ``size`` bytes. None
    where there is none, and where cards do not reach each other: through the host its bytes would cross this card's
    link after all."""
    cards = len(card.nodes)
    odd = total % cards
    if not odd or not card.peers or not layers or layers[-1] < total - odd:
        return None
    helpers = [cast(Device, node) for node in card.nodes[odd:]]
    return Relay(card, place_of(layers[-1], cards)[1], helpers, size, odd / cards)


@dataclass(frozen=True, slots=True)
class _Landing:
    card: Device
    buffer: Buffer
    landed: Fence


class Relay:
    """Brings parts of ``layer``, counted along the share of ``card``, over the links of ``helpers``.

    ``own``: the part of its bytes that comes over the card's own link. The relay queue of the card takes a part over
    once it has landed, and once the card's own part is there: then the slot is surely free. A landing buffer is written
    again after it has been taken over; with as many slots as layers that is before the pass has ended. Never blocks the
    host.
    """

    def __init__(self, card: Device, layer: int, helpers: Sequence[Device], size: int, own: float) -> None:
        self.layer, self._card, self._own = layer, card, own
        self._queue = cast(Node, card).relay_queue
        self.relayed = card.create_fence(card.fresh_name("relayed"))
        # Cuts lie at multiples of the alignment, so a part may be longer by one.
        room = int(size * (1 - own) / len(helpers)) + 2 * BUFFER_ALIGNMENT
        self._coming: list[list[Part]] = []
        self._landings = [
            _Landing(
                helper,
                helper.create_buffer(room, helper.fresh_name("landing")),
                helper.create_fence(helper.fresh_name("landed")),
            )
            for helper in helpers
        ]

    def send(self, parts: Sequence[Part]) -> list[Part]:
        """Send all of ``parts`` but the card's own over the other links; returns those for its own, which the caller
        copies before it calls `take_over`."""
        total = sum(span.size for _, _, span in parts)
        shares = [self._own] + [(1 - self._own) / len(self._landings)] * len(self._landings)
        cuts = [0]
        for share in shares[:-1]:
            cuts.append(min(total, cuts[-1] + _aligned(total * share)))
        own, *others = (_cut(parts, start, end) for start, end in zip(cuts, [*cuts[1:], total], strict=True))
        self._coming = others
        taken = self.relayed.last_submitted
        for landing, given in zip(self._landings, others, strict=True):
            queue, offset = landing.card.copy_queue, 0
            if taken:
                queue.wait(self.relayed, taken)
            for _, _, span in given:
                queue.copy(landing.buffer.span(offset, span.size), span, label="part of a layer for another card")
                offset += span.size
            queue.signal(landing.landed, landing.landed.last_submitted + 1)
        return own

    def take_over(self, copied: Fence, value: int) -> int:
        """Let the relay queue bring what was sent last into the slot, after its own part: ``value`` of ``copied``.
        Returns the value of `relayed` at which all of the layer is there."""
        self._queue.wait(copied, value)
        for landing, given in zip(self._landings, self._coming, strict=True):
            self._queue.wait(landing.landed, landing.landed.last_submitted)
            offset = 0
            for buffer, start, span in given:
                self._queue.copy(
                    buffer.span(start, span.size), landing.buffer.span(offset, span.size), label="relay part of a layer"
                )
                offset += span.size
        value = self.relayed.last_submitted + 1
        self._queue.signal(self.relayed, value)
        return value

    def let_read(self, queue: CommandQueue, value: int) -> None:
        """Let ``queue`` wait for the layer for which `take_over` returned ``value``."""
        queue.wait(self.relayed, value)

    def close(self) -> None:
        """Block the host until nothing is in flight, and give the memory back. May be called again."""
        self.relayed.wait(self.relayed.last_submitted)
        for landing in self._landings:
            landing.buffer.free()
        self._landings = []


def _aligned(size: float) -> int:
    return -(-int(size) // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT


def _cut(parts: Sequence[Part], start: int, end: int) -> list[Part]:
    """Bytes ``start`` to ``end`` of ``parts``, one after the other."""
    found, before = [], 0
    for buffer, offset, span in parts:
        low, high = max(start, before), min(end, before + span.size)
        if low < high:
            skip = low - before
            found.append((buffer, offset + skip, Span(span.buffer, span.offset + skip, high - low)))
        before += span.size
    return found
