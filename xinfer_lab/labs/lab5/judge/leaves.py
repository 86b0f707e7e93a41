"""Lab 5: whether those pages leave a pool that CLOCK would let go."""

from __future__ import annotations

from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.labs.lab5.clock_run import ClockRun
from xinfer_lab.labs.lab5.pages import pages_of

__all__ = ["leaves_by_clock"]


def leaves_by_clock(evidence: Evidence) -> Fault | None:
    """At each call the pages are there that CLOCK would have kept."""
    clock = ClockRun(evidence.case.shape.frames)
    for call in pages_of(evidence).calls:
        there = set(call.before.pages.values())
        if there != clock.held:
            gone, stayed = sorted(clock.held - there), sorted(there - clock.held)
            if not stayed:
                return Fault(
                    "victim",
                    "A page has left for which nobody needed the frame.",
                    expected=f"page {' and '.join(map(str, gone))} stays",
                    got=f"gone, before {call.name} of page {call.page}",
                    show=False,
                )
            return Fault(
                "victim",
                "Another page leaves than CLOCK would choose.",
                expected=f"page {' and '.join(map(str, gone))} stays, page {' and '.join(map(str, stayed))} leaves",
                got=f"the other way round, before {call.name} of page {call.page}",
                show=False,
            )
        clock.take(call.name, call.page)
    return None
