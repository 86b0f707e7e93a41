"""Reads the slot that a record works on from its buffers' names (``slot[0].attention``, ``slot[1].mlp``, ...).

Names are the only link: a record knows no object of the program, since it has to mean the same when it is loaded from
a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from xinfer_lab.device.records import Copy, Dispatch, Record
from xinfer_lab.views.labels import slot_of_buffer

__all__ = ["SlotOf", "SlotSource", "as_slot_of", "slot_of_record", "slots_of"]

SlotOf = Callable[[int], int | None]
"""From a record's index in its stream to the slot that it fills or reads."""

SlotSource = SlotOf | Mapping[int, int] | None
"""What the views accept: a function, a mapping by record index, or nothing known."""


def slot_of_record(record: Record) -> int | None:
    """The slot that a copy fills (or empties) or a kernel reads; None for everything else.

    A kernel that reads several slots counts for the one with the lowest number.
    """
    match record:
        case Copy():
            filled = slot_of_buffer(record.dst.buffer)
            return filled if filled is not None else slot_of_buffer(record.src.buffer)
        case Dispatch():
            found = (slot_of_buffer(view.buffer) for view in record.operands.values())
            return min((slot for slot in found if slot is not None), default=None)
        case _:
            return None


def slots_of(stream: Iterable[Record]) -> SlotOf:
    """The slot of each record of ``stream`` by its index. The stream is read once, now."""
    known = {index: slot for index, record in enumerate(stream) if (slot := slot_of_record(record)) is not None}
    return known.get


def as_slot_of(source: SlotSource) -> SlotOf:
    """``source`` as a function."""
    if source is None:
        return lambda _record: None
    return source.get if isinstance(source, Mapping) else source
