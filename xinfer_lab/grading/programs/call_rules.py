"""Rules about the calls of a program's methods: which commands belong to which call.

For example: an engine asks its ring for room and only submits; a function makes one queue wait and no other.
"""

from __future__ import annotations

from collections.abc import Iterator

from xinfer_lab.device.records import Copy, HostWait, HostWrite, Signal, Span, Wait
from xinfer_lab.grading.programs.calls import Call
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.grading.programs.run_rules import Rule, host_never_sleeps
from xinfer_lab.views.labels import slot_of_buffer

__all__ = [
    "asks_the_ring",
    "copies_nothing",
    "host_waits_in_the_ring_only",
    "in_a_call",
    "makes_wait_only",
    "signals_only",
]


def in_a_call(evidence: Evidence, name: str, index: int) -> bool:
    """Whether record ``index`` was issued within a call of ``name``."""
    return any(call.name == name and call.begin <= index < call.end for call in evidence.calls)


def _handed_out(evidence: Evidence) -> Iterator[tuple[int, list[Span]]]:
    """From which record on which ranges are handed out and not yet retired."""
    ranges: list[Span] = []
    for call in sorted(evidence.calls, key=lambda call: call.end):
        match call:
            case Call("allocate", _, end, (str(heap), int(offset), int(size))):
                ranges = [*ranges, Span(heap, offset, size)] if size > 0 and offset >= 0 else ranges
                yield end, ranges
            case Call("retire", _, end, _):
                ranges = []
                yield end, ranges


def asks_the_ring(evidence: Evidence) -> Fault | None:
    """Slots are filled from ranges that the ring has handed out and was not told about yet; and nothing else in its
    heap is written."""
    changes = list(_handed_out(evidence))
    heaps = {span.buffer for _, ranges in changes for span in ranges}
    ranges: list[Span] = []
    for index, record in enumerate(evidence.stream):
        while changes and changes[0][0] <= index:
            ranges = changes.pop(0)[1]
        if isinstance(record, Copy) and slot_of_buffer(record.dst.buffer) is not None:
            span, what = record.src, "copied from"
        elif isinstance(record, HostWrite) and record.dst.buffer in heaps:
            span, what = record.dst, "written to"
        else:
            continue
        if any(one.buffer == span.buffer and one.offset <= span.offset and span.end <= one.end for one in ranges):
            continue
        listed = ", ".join(map(str, ranges)) or "none"
        return Fault(
            "not-handed-out",
            "Staging memory is used that the ring has not handed out.",
            expected="bytes of a range that ring.allocate returned, before ring.retire is told of it",
            got=f"{span} is {what}; ranges handed out and not yet retired: {listed}",
            records=(index,),
            hint="Ask self.ring.allocate(size) for room, for each group anew, and tell self.ring.retire after the "
            "signal.",
            show=False,
        )
    return None


def host_waits_in_the_ring_only(evidence: Evidence) -> Fault | None:
    """From the first pass on until the last result is there, the host waits within ``allocate``, or for results."""
    for index in evidence.host_waits():
        record = evidence.stream[index]
        if not isinstance(record, HostWait) or in_a_call(evidence, "allocate", index):
            continue
        return Fault(
            "host-waits-outside",
            "The host waits outside of the ring.",
            expected="no wait of the host but the ring's own, in allocate, when there is no room",
            got=f"the host waits for {record.fence} >= {record.value}",
            records=(index,),
            hint="The ring knows which copy is in the way, and waits for that one.",
        )
    return host_never_sleeps(evidence)


def makes_wait_only(name: str, queues: frozenset[str], hint: str) -> Rule:
    """The rule that within calls of ``name`` no queue but ``queues`` is made to wait."""
    allowed = " and ".join(f"the {queue} queue" for queue in sorted(queues)) or "no queue"

    def waits_as_allowed(evidence: Evidence) -> Fault | None:
        for call in evidence.calls:
            if call.name != name:
                continue
            for index in range(call.begin, min(call.end, len(evidence.stream))):
                record = evidence.stream[index]
                if isinstance(record, Wait) and record.queue not in queues:
                    return Fault(
                        "queue-waits",
                        f"{name} makes the {record.queue} queue wait.",
                        expected=f"{name} lets {allowed} wait" + (", and no other" if queues else ""),
                        got=f"the {record.queue} queue waits for {record.fence} >= {record.value}",
                        records=(index,),
                        hint=hint,
                    )
        return None

    return waits_as_allowed


def copies_nothing(name: str) -> Rule:
    """The rule that calls of ``name`` bring no bytes: no copy is submitted within them."""

    def copies(evidence: Evidence) -> Fault | None:
        for call in evidence.calls:
            for index in range(call.begin, min(call.end, len(evidence.stream))) if call.name == name else ():
                record = evidence.stream[index]
                if isinstance(record, Copy):
                    return Fault(
                        "uploads",
                        f"{name} copies something.",
                        expected=f"no copy in {name}: what it is about is on its way already",
                        got=f"{record.src} is copied to {record.dst}",
                        records=(index,),
                        show=False,
                    )
        return None

    return copies


def signals_only(name: str, fence: str) -> Rule:
    """The rule that within calls of ``name`` no fence is signalled but those whose names begin with ``fence``, and
    those by which the host waits for an idle device, which is another fault."""

    def signals_as_allowed(evidence: Evidence) -> Fault | None:
        for call in evidence.calls:
            if call.name != name:
                continue
            for index in range(call.begin, min(call.end, len(evidence.stream))):
                record = evidence.stream[index]
                if isinstance(record, Signal) and not record.fence.startswith((fence, "idle")):
                    return Fault(
                        "extra-signal",
                        f"{name} signals a second fence.",
                        expected=f"one signal in {name}, of {fence}",
                        got=f"{record.fence} = {record.value} besides",
                        records=(index,),
                        hint="One fence says all: whoever needs the upload waits for the value that was returned.",
                        show=False,
                    )
        return None

    return signals_as_allowed
