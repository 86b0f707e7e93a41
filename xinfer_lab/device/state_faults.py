"""A broken rule of resource states, and how it is reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xinfer_lab.device.journal import MissingEdge, Moment
from xinfer_lab.device.record_words import edge_lines, join_plain, picture, source_lines, source_text

__all__ = ["STATE_FAULT_KINDS", "StateFault"]

STATE_FAULT_KINDS = ("rejected", "copy-queue-state", "tracker-stale", "assumed-too-early")
"""D3D12 refuses the use or the barrier; a copy queue is given a state that it cannot use; the tracker and the device
differ at an ExecuteCommandLists; `assume_common` is called before its claim is true."""

_NOTES = {
    "rejected": "D3D12 rejects this; what the command would do to the buffer is undefined.",
    "copy-queue-state": "D3D12 rejects this: lists of a copy queue know COMMON, COPY_DEST and COPY_SOURCE only.",
    "tracker-stale": "D3D12 itself would let it pass: for a buffer in COMMON it takes any promotable state as a "
    "barrier's before. The fence is correctness; the tracker is bookkeeping, and here the books are wrong.",
    "assumed-too-early": "D3D12 itself would let it pass: it knows nothing of the tracker. But the tracker now says "
    "what is not true yet, and a barrier recorded from it is right by luck only.",
}
_TITLES = {
    "rejected": "rejected by the device",
    "copy-queue-state": "state unknown to a copy queue",
    "tracker-stale": "stale tracker",
    "assumed-too-early": "COMMON assumed too early",
}


@dataclass(frozen=True, slots=True)
class StateFault:
    """Record number ``record`` breaks a rule of states for ``buffer``.

    ``kind`` is one of `STATE_FAULT_KINDS`. ``message`` says what was wanted and what was there, ``remedy`` what to
    write. ``first`` is the record that left the buffer in the state it is in, or None; ``missing`` the edge that is
    missing, or None. ``moment`` holds the records around.
    """

    kind: str
    record: int
    buffer: str
    message: str
    remedy: str
    moment: Moment
    first: int | None = None
    missing: MissingEdge | None = None

    @property
    def headline(self) -> str:
        """One line: the kind, and what was wanted and what was there."""
        return join_plain([f"{_TITLES[self.kind]}: {self.message}"])

    def report(self, text_of: Callable[[str], str] = source_text) -> str:
        """The whole report: source lines, what to write, what D3D12 says to it, and a picture.

        ``text_of(where)`` gives the text of a source line, '' if there is none. The default reads the file that the
        record names; pass another one for a stream from elsewhere, whose file names cannot be trusted.
        """
        records = dict(self.moment)
        lines, marks = [self.headline], {}
        if self.first is not None:
            lines += source_lines("first", self.first, records[self.first], text_of)
            marks[self.first] = "<== first"
        lines += source_lines("here", self.record, records[self.record], text_of)
        marks[self.record] = "<== here"
        if self.missing is not None and self.first is not None:
            lines += edge_lines(self.missing, self.first, f"before record {self.record}")
        if self.remedy:
            lines.append(f"  mend     {self.remedy}")
        lines.append(f"  note     {_NOTES[self.kind]}")
        hole = self.record if self.missing is not None else -1
        return join_plain([*lines, "", *picture(self.moment, marks, self.missing, hole)])

    def __str__(self) -> str:
        return self.report()
