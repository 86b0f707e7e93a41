"""What can be asked of a page pool's signals and waits one by one: a signal for each copy, and none for nothing."""

from __future__ import annotations

from xinfer_lab.device.device import WRITE_BACK
from xinfer_lab.device.records import Signal, Wait
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.labs.lab5.pages import FETCHES, PoolCall, pages_of

__all__ = ["signals_once", "submits_nothing_for_clean_pages", "waits_for_signals"]


def submits_nothing_for_clean_pages(evidence: Evidence) -> Fault | None:
    """The write-back queue is given something only in calls in which a page goes home."""
    for call in pages_of(evidence).calls:
        if any(not copy.brings for copy in call.copies):
            continue
        begun = [i for i, record in call.records(evidence.stream) if getattr(record, "queue", "") == WRITE_BACK]
        if begun:
            first = evidence.stream[begun[0]]
            what = {"signal": "signals", "wait": "waits"}.get(first.op, "works")
            return Fault(
                "submits-clean",
                f"The write-back queue {what} in {call.name} of page {call.page}, and no page goes home.",
                expected="nothing on the write-back queue: nobody has written the page that leaves",
                got=f"{len(begun)} command{'s' if len(begun) > 1 else ''} of the write-back queue",
                records=tuple(begun),
                hint="What the write-back queue is given belongs under the question whether the page is dirty.",
                show=False,
            )
    return None


def signals_once(evidence: Evidence) -> Fault | None:
    """Each copy is signalled once, by its own queue; ``release`` signals at most once, and waits for nothing."""
    for call in pages_of(evidence).calls:
        waits = [i for i, record in call.records(evidence.stream) if isinstance(record, Wait)]
        if call.name == "release" and waits:
            return Fault(
                "waits-early",
                f"release lets the {getattr(evidence.stream[waits[0]], 'queue', '')} queue wait.",
                expected="a signal, and no wait: whoever overwrites the frame waits",
                got=f"{len(waits)} wait{'s' if len(waits) > 1 else ''}",
                records=tuple(waits),
            )
        for queue, most in _allowed(call).items():
            signals = [
                index
                for index, record in call.records(evidence.stream)
                if isinstance(record, Signal) and record.queue == queue
            ]
            if len(signals) > most or (call.name != "release" and len(signals) < most):
                return Fault(
                    f"signals:{'evict' if queue == WRITE_BACK else call.name}",
                    f"The {queue} queue signals {_times(len(signals))} in {call.name} of page {call.page}.",
                    expected=f"{_times(most)}: a signal says that what was submitted before it is done, and one is "
                    "enough for that"
                    if most
                    else f"no signal of the {queue} queue there",
                    got=_times(len(signals)),
                    records=tuple(signals[most:]),
                    show=False,
                )
    return None


def _allowed(call: PoolCall) -> dict[str, int]:
    """How often each queue signals in a call like this one. (A release after which others still use the page may leave
    its signal to them.)"""
    brought, saved = (sum(copy.brings == brings for copy in call.copies) for brings in (True, False))
    if call.name in FETCHES:
        return {"copy": brought, WRITE_BACK: saved, "direct": 0}
    return {"copy": 0, WRITE_BACK: saved, "direct": int(call.name == "release")}


def _times(number: int) -> str:
    return {0: "not at all", 1: "once", 2: "twice"}.get(number, f"{number} times")


def waits_for_signals(evidence: Evidence) -> Fault | None:
    """What a queue waits for within the pool is a value that is signalled, or 0."""
    signalled = {(record.fence, record.value) for record in evidence.stream if isinstance(record, Signal)}
    for call in pages_of(evidence).calls:
        for index, record in call.records(evidence.stream):
            if isinstance(record, Wait) and record.value and (record.fence, record.value) not in signalled:
                return Fault(
                    "never-signalled",
                    f"The {record.queue} queue waits for {record.fence} >= {record.value}, which nobody signals.",
                    expected="a wait for a value that was signalled: note the one that you signal",
                    got=f"{record.value} lies between two values of {record.fence}",
                    records=(index,),
                    show=False,
                )
    return None
