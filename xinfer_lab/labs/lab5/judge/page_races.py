"""Races of a page pool by what was not awaited, and waits of the host that are no fence's."""

from __future__ import annotations

from dataclasses import replace

from xinfer_lab.device.device import WRITE_BACK
from xinfer_lab.device.hazard import Hazard
from xinfer_lab.device.records import Copy, HostWait, Record
from xinfer_lab.grading.programs import run_rules as rules
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.labs.lab5.pages import pages_of

__all__ = ["ARRIVED", "EMPTIED", "HOME", "LAST_USE", "WRITER", "host_never_blocks_for_pages", "no_race"]

ARRIVED, LAST_USE, WRITER, EMPTIED, HOME = (
    f"hazard:{name}" for name in ("arrived", "last-use", "writer", "emptied", "home")
)
"""A race of two queues, by what the later command has to wait for: the page's copy, the frame's last use before a copy
into it, or before one home from it, the copy home of what lay in the frame, and that of the page itself."""
_MEETINGS = {("direct", "copy"): ARRIVED, ("copy", "direct"): LAST_USE, (WRITE_BACK, "direct"): WRITER}


def no_race(evidence: Evidence) -> Fault | None:
    """No two accesses race. Told is a queue that signals for another one, which spoils every wait; else, of the first
    command that races, the race with the latest other one."""
    hazards = evidence.findings.hazards
    if not hazards:
        return None
    waits = (rules.hazard_fault(evidence, hazard) for hazard in hazards if hazard.kind == "self-wait")
    if (signalled := next((fault for fault in waits if fault.kind == "hazard:wrong-signaller"), None)) is not None:
        return signalled
    hazard = rules.telling_hazard(hazards)
    fault = rules.hazard_fault(evidence, hazard)
    meeting = _meeting(evidence, hazard)
    return replace(fault, kind=f"{meeting}:{hazard.kind}") if meeting else fault


def _meeting(evidence: Evidence, hazard: Hazard) -> str:
    late, early = evidence.stream[hazard.second], evidence.stream[hazard.first]
    queues = getattr(late, "queue", ""), getattr(early, "queue", "")
    if queues == ("copy", WRITE_BACK):
        return HOME if _about(late, early, evidence.case.shape.home) else EMPTIED
    return _MEETINGS.get(queues, "")


def _about(late: Record, early: Record, home: str) -> bool:
    """Whether both copy between frames and homes, and of the same page."""
    if not isinstance(late, Copy) or not isinstance(early, Copy):
        return False
    spans = [next((span for span in (one.src, one.dst) if span.buffer == home), None) for one in (late, early)]
    return spans[0] is not None and spans[1] is not None and spans[0].overlaps(spans[1])


def host_never_blocks_for_pages(evidence: Evidence) -> Fault | None:
    """The host waits for nothing within calls of the pool, and never sleeps."""
    for call in pages_of(evidence).calls:
        for index, record in call.records(evidence.stream):
            if isinstance(record, HostWait):
                return Fault(
                    "host-blocks",
                    f"The host blocks in {call.name}.",
                    expected="the host submits and goes on; queues wait for fences",
                    got=f"the host waits for {rules.awaited(record)}",
                    records=(index,),
                    hint="Let a queue wait instead of the host: queue.wait(fence, value).",
                )
    slept = rules.host_never_sleeps(evidence)
    return slept and replace(slept, headline="The host sleeps while the pool is at work.")
