"""Reads from a command stream which layer lay in which slot whenever a slot was used.

Only copies and kernels count, in the order in which they were issued. What the program meant to do is not asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from xinfer_lab.device.records import Copy, Dispatch, HostWrite, Record, Source, Span
from xinfer_lab.views.labels import layer_of, slot_of_buffer
from xinfer_lab.views.slots import slot_of_record

__all__ = ["SlotContent", "SlotUse", "slot_history"]

_WEIGHT = re.compile(r"\blayers\.(\d+)\.")


@dataclass(frozen=True, slots=True)
class SlotContent:
    """What a slot holds: ``layer`` (None where the upload does not say) since record ``upload``; ``used`` since then
    or not."""

    layer: int | None
    upload: int
    used: bool


@dataclass(frozen=True, slots=True)
class SlotUse:
    """Record ``record`` computes ``layer`` from ``slot``; ``contents`` is what each slot holds at that moment.

    ``forward`` counts forward passes from 0: a new one begins where the layers start again.
    """

    record: int
    forward: int
    layer: int | None
    slot: int
    contents: dict[int, SlotContent] = field(default_factory=dict)

    @property
    def wrong(self) -> bool:
        """Whether the slot holds another layer than the one computed, or nothing at all."""
        held = self.contents.get(self.slot)
        return held is None or (None not in (held.layer, self.layer) and held.layer != self.layer)


class _Staged:
    """What the host wrote into which bytes of staging memory: the newest write rules."""

    def __init__(self) -> None:
        self._writes: dict[str, list[tuple[Span, Source]]] = {}

    def write(self, record: HostWrite) -> None:
        kept = [item for item in self._writes.get(record.dst.buffer, []) if not item[0].overlaps(record.dst)]
        self._writes[record.dst.buffer] = [*kept, (record.dst, record.source)]

    def layer(self, span: Span) -> int | None:
        for written, source in self._writes.get(span.buffer, []):
            if written.overlaps(span) and (found := _WEIGHT.search(source.name)):
                return int(found.group(1))
        return None


def slot_history(stream: Iterable[Record]) -> tuple[SlotUse, ...]:
    """Each use of a slot in issue order; kernels in a row on the same slot and layer are one use.

    An upload's layer is read from the copy's label, else from the name of the weights that the host had staged. A
    kernel's layer is its ``layer`` parameter, else read from its label.
    """
    staged, contents, uses = _Staged(), {}, list[SlotUse]()
    for index, record in enumerate(stream):
        slot = slot_of_record(record)
        match record:
            case HostWrite():
                staged.write(record)
            case Copy() if slot is not None and slot == slot_of_buffer(record.dst.buffer):
                layer = layer_of(record.label)
                contents[slot] = SlotContent(staged.layer(record.src) if layer is None else layer, index, False)
            case Dispatch() if slot is not None:
                layer = _computed(record)
                before = uses[-1] if uses else None
                held = contents.get(slot)
                same = before is not None and before.slot == slot and before.layer == layer
                if not (same and held is not None and held.used):
                    uses.append(SlotUse(index, _forward(before, layer), layer, slot, dict(contents)))
                if held is not None:
                    contents[slot] = SlotContent(held.layer, held.upload, True)
    return tuple(uses)


def _computed(record: Dispatch) -> int | None:
    layer = record.params.get("layer")
    return layer if isinstance(layer, int) else layer_of(record.label)


def _forward(before: SlotUse | None, layer: int | None) -> int:
    if before is None:
        return 0
    again = layer is not None and before.layer is not None and layer <= before.layer
    return before.forward + (1 if again else 0)
