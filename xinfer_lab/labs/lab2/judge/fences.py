"""Lab 2: what its judges know about fences, and the wrong ideas about them that every part of the lab may show."""

from __future__ import annotations

from xinfer_lab.device.records import Signal, Wait
from xinfer_lab.grading.programs.call_rules import in_a_call
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.grading.programs.run_rules import Rule
from xinfer_lab.grading.programs.verify_program import Named

__all__ = ["FENCE_IDEAS", "RETURN_IDEAS", "counts", "race", "waits"]


def race(kind: str, evidence: Evidence, fault: Fault) -> bool:
    """Whether ``fault`` is a hazard of ``kind``."""
    return fault.kind == f"hazard:{kind}"


def waits(evidence: Evidence, queue: str, fence: str) -> list[int]:
    """The values that ``queue`` waits for, of the fences whose names begin with ``fence``."""
    records = evidence.stream
    return [r.value for r in records if isinstance(r, Wait) and r.queue == queue and r.fence.startswith(fence)]


def refused(words: str, evidence: Evidence, fault: Fault) -> bool:
    return fault.kind == "raised:FenceError" and words in fault.got


def counts(fence: str, what: str, hint: str) -> Rule:
    """The rule that the fences whose names begin with ``fence`` are signalled with 1, 2, 3, ..., once for each step."""

    def counts_from_one(evidence: Evidence) -> Fault | None:
        signals = [(i, r) for i, r in enumerate(evidence.stream) if isinstance(r, Signal) and r.fence.startswith(fence)]
        for number, (index, signal) in enumerate(signals, 1):
            if signal.value == number and number <= evidence.steps:
                continue
            wanted = (
                f"{what} number {number} signals {number}"
                if number <= evidence.steps
                else f"one signal for each {what}"
            )
            return Fault(
                "number",
                f"The fence does not count: each {what} is 1 more.",
                expected=wanted,
                got=f"{signal.fence} = {signal.value}, as signal number {number}"
                + (f": {len(signals)} signals for {evidence.steps} {what}s" if len(signals) > evidence.steps else ""),
                records=(index,),
                hint=hint,
            )
        return None

    return counts_from_one


RETURN_IDEAS = (
    Named(
        "Another device",
        "The notebook's own `device` is left over from the first cells. Use what you were given: self.device, "
        "self.queue, self.heap.",
        lambda evidence, fault: fault.kind.startswith("raised:") and "another device" in fault.got,
        instead_of_hint=True,
    ),
    Named(
        "Nothing is returned",
        "A function without return gives back None. Its docstring says what it has to return.",
        lambda evidence, fault: fault.kind == "raised:TypeError" and fault.got.endswith("but returned None"),
    ),
)

FENCE_IDEAS = (
    *RETURN_IDEAS,
    Named(
        "The wrong queue signals",
        "A signal says that all that was submitted to its own queue before it is done, and nothing of the other queue: "
        "the one that did the work signals.",
        lambda evidence, fault: fault.kind == "hazard:wrong-signaller",
    ),
    Named(
        "Two queues signal one fence",
        "A fence belongs to one queue: with two signallers, reaching a value would say nothing about either. The "
        "queue that did the "
        "work says that it is done.",
        lambda evidence, fault: refused("belongs to", evidence, fault),
    ),
    Named(
        "A fence value is used twice",
        "Values only grow: a wait could not tell the second 1 from the first. Number the uploads, and the steps, "
        "over all passes.",
        lambda evidence, fault: refused("the next value must be", evidence, fault),
    ),
    Named(
        "The first value is 0",
        "A fence starts at 0, so reaching 0 says nothing. The first thing that is done is number 1.",
        lambda evidence, fault: refused("starts at 0", evidence, fault),
    ),
    Named(
        "Wait before signal",
        "A wait names a value that was submitted before it. The signal comes first in the program, then what waits "
        "for it.",
        lambda evidence, fault: fault.kind == "raised:EarlyWait",
    ),
    Named(
        "The wrong queue waits",
        "A wait holds back the queue that it is given to. A queue that waits for its own signal waits for nothing: "
        "it works in order anyway.",
        lambda evidence, fault: (
            race("self-wait", evidence, fault) and not in_a_call(evidence, "allocate", fault.records[0])
        ),
    ),
)
