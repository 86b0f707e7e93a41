"""Lab 5: the signs in a run by which its judges recognise a wrong idea: each looks at the evidence and the fault."""

from __future__ import annotations

from xinfer_lab.device.records import Record, Signal, Wait
from xinfer_lab.grading.programs.calls import REFUSED
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.labs.lab5.judge.notes import how_marked, how_noted, how_released
from xinfer_lab.labs.lab5.judge.page_races import ARRIVED, EMPTIED, HOME, LAST_USE, WRITER
from xinfer_lab.labs.lab5.pages import PageCopy, pages_of
from xinfer_lab.labs.lab5.script import PoolScript

__all__ = [
    "BLAME",
    "awaited_at_all",
    "broke_in",
    "brought_by_number",
    "copies_home_noted",
    "copy_not_awaited",
    "fewer_signals_than_copies",
    "frame_0_stays_empty",
    "full_when_it_broke",
    "lost",
    "nobody_leaves",
    "not_done",
    "not_home_yet",
    "not_saved_yet",
    "off_by_one",
    "on_its_way",
    "only_on_demand",
    "own_wait",
    "pushes_nobody_out_ahead",
    "raised",
    "raised_at",
    "reaches_into_a_given_class",
    "reader_not_awaited",
    "saved_in_the_last_call",
    "signalled_another_value",
    "signals_before_bringing",
    "signals_before_saving",
    "unsignalled_use",
    "uses_noted",
    "waits",
    "waits_before",
    "waits_behind",
    "waits_for_saved",
    "writer_not_awaited",
]

BLAME = {
    ARRIVED: "acquire",
    LAST_USE: "prefetch",
    WRITER: "evict",
    EMPTIED: "prefetch",
    HOME: "prefetch",
    "refused": "acquire",
    "not-refused": "acquire",
    "wrong-frame": "acquire",
    "on-demand": "prefetch",
    "wrong-answer": "prefetch",
    "dropped": "evict",
    "saved-clean": "evict",
    "wrong-home": "evict",
    "in-use": "acquire",
    "bytes": "evict",
    "wrong-page": "prefetch",
    "no-overlap": "prefetch",
    "victim": "acquire",
    "hit-rate": "choose",
    "submits-clean": "evict",
    "signals:prefetch": "prefetch",
    "signals:acquire": "prefetch",
    "signals:release": "release",
    "signals:evict": "evict",
    "waits-early": "release",
    "never-signalled": "prefetch",
}
"""The function where the remedy of a fault belongs, by the beginning of the fault's kind."""


def _queue(record: Record) -> str:
    """The queue of a record, or the host."""
    return getattr(record, "queue", "host")


def copy_not_awaited(evidence: Evidence, fault: Fault) -> bool:
    """The direct queue uses a page before its copy."""
    return fault.kind.startswith(ARRIVED)


def reader_not_awaited(evidence: Evidence, fault: Fault) -> bool:
    """A page comes into a frame that the direct queue may still use."""
    return fault.kind.startswith(LAST_USE)


def writer_not_awaited(evidence: Evidence, fault: Fault) -> bool:
    """A frame is saved before the direct queue has written it."""
    return fault.kind.startswith(WRITER)


def not_saved_yet(evidence: Evidence, fault: Fault) -> bool:
    """A page comes into a frame whose contents are still being saved."""
    return fault.kind.startswith(EMPTIED)


def not_home_yet(evidence: Evidence, fault: Fault) -> bool:
    """A page is brought before its own bytes are home."""
    return fault.kind.startswith(HOME)


def copies_home_noted(evidence: Evidence, fault: Fault, way: str) -> bool:
    """Whether a copy home was not awaited because its value was noted in this ``way``."""
    if not fault.kind.startswith((EMPTIED, HOME)):
        return False
    return way in (how_noted(evidence) or ())


def uses_noted(evidence: Evidence, fault: Fault, way: str) -> bool:
    """Whether a frame's last use was not awaited because its value was noted in this ``way``."""
    return not_done(evidence, fault) and how_released(evidence) == way


def signalled_another_value(evidence: Evidence, fault: Fault) -> bool:
    """Whether a queue waits for a value that is not signalled, of a fence that is."""
    fences = {record.fence for record in evidence.stream if isinstance(record, Signal)}
    return raised(fault, "EarlyWait") and any(f"'{fence}'" in fault.got for fence in fences)


def waits(evidence: Evidence, queue: str, fence: str) -> list[int]:
    """The values above 0 that ``queue`` waits for, of fences whose names begin with ``fence``."""
    return [
        record.value
        for record in evidence.stream
        if isinstance(record, Wait) and record.queue == queue and record.fence.startswith(fence) and record.value
    ]


def _signals(evidence: Evidence, fence: str) -> list[int]:
    """The records that signal a fence whose name begins with ``fence``."""
    return [i for i, r in enumerate(evidence.stream) if isinstance(r, Signal) and r.fence.startswith(fence)]


def _copies(evidence: Evidence, brings: bool) -> list[int]:
    """The records of copies to the device, or home."""
    return [copy.record for copy in pages_of(evidence).copies if copy.brings == brings]


def _signals_first(evidence: Evidence, fence: str, brings: bool) -> bool:
    """Whether the first copy is submitted only behind the first signal of the fence that counts copies."""
    signals, copies = _signals(evidence, fence), _copies(evidence, brings)
    return bool(signals and copies) and signals[0] < copies[0]


def signals_before_bringing(evidence: Evidence, fault: Fault) -> bool:
    """A page is used before its copy, and signals come before copies."""
    return copy_not_awaited(evidence, fault) and _signals_first(evidence, "arrived", True)


def signals_before_saving(evidence: Evidence, fault: Fault) -> bool:
    """As `signals_before_bringing`, of copies home."""
    late = not_saved_yet(evidence, fault) or not_home_yet(evidence, fault)
    return late and _signals_first(evidence, "saved", False)


def waits_behind(evidence: Evidence, fault: Fault, fence: str) -> bool:
    """Whether the queue of the late command waits for ``fence`` right after that command."""
    late = fault.records[0]
    queue = _queue(evidence.stream[late])
    behind = (evidence.stream[i] for i in range(late + 1, len(evidence.stream)))
    following = next((record for record in behind if _queue(record) == queue), None)
    return isinstance(following, Wait) and following.fence.startswith(fence) and following.value > 0


def fewer_signals_than_copies(evidence: Evidence, fault: Fault) -> bool:
    """A page is used before its copy, and not every copy was signalled by then."""
    brought = [index for index in _copies(evidence, True) if fault.records and index <= max(fault.records)]
    return (
        copy_not_awaited(evidence, fault)
        and len(_signals(evidence, "arrived")) > 0
        and (sum(index <= max(fault.records) for index in _signals(evidence, "arrived")) < len(brought))
    )


def waits_before(evidence: Evidence, fault: Fault, fence: str) -> bool:
    """Whether the queue of the late command waits for some value of ``fence`` before that command."""
    late = fault.records[0]
    queue = _queue(evidence.stream[late])
    return any(
        isinstance(record, Wait) and _queue(record) == queue and record.fence.startswith(fence)
        for record in (evidence.stream[i] for i in range(late))
    )


def raised(fault: Fault, *kinds: str) -> bool:
    """Whether the fault is an exception of one of these kinds."""
    return fault.kind in {f"raised:{kind}" for kind in kinds}


def _last_call(evidence: Evidence) -> str:
    return evidence.calls[-1].name if evidence.calls else ""


def broke_in(evidence: Evidence, fault: Fault, *calls: str) -> bool:
    """Whether the table refused something, within one of these calls."""
    return raised(fault, "PageError") and _last_call(evidence) in calls


def full_when_it_broke(evidence: Evidence) -> bool:
    """Whether the last call found every frame in use."""
    calls = pages_of(evidence).calls
    last = calls[-1] if calls else None
    return (
        last is not None
        and last.before.frame_of(last.page) is None
        and not last.before.room(evidence.case.shape, ahead=False)
    )


def on_its_way(evidence: Evidence, fault: Fault) -> bool:
    """Whether, when the refusal came, pages on their way could have gone, and no others."""
    for call in pages_of(evidence).calls:
        if call.name == "acquire" and call.result == REFUSED:
            shape = evidence.case.shape
            return call.before.room(shape, ahead=False) and not call.before.room(shape, ahead=True)
    return False


def raised_at(evidence: Evidence) -> str:
    """The student's line that raised, or ''."""
    return (evidence.raised.line or "") if evidence.raised else ""


def reaches_into_a_given_class(evidence: Evidence, fault: Fault) -> bool:
    """Whether an answer that runs beside given parts asked their table or policy for what only its author's own has."""
    given = isinstance(evidence.case, PoolScript) and raised(fault, "AttributeError")
    return given and ("'PageTable' object" in fault.got or "'Clock' object" in fault.got)


def awaited_at_all(evidence: Evidence, fault: Fault) -> bool:
    """Whether the direct queue was told to wait in the call that acquired what the late command uses."""
    late = fault.records[0]
    acquired = [call for call in pages_of(evidence).calls if call.name == "acquire" and call.call.begin <= late]
    wanted = {use.page for use in pages_of(evidence).uses if use.record == late}
    for call in reversed(acquired):
        if call.page in wanted:
            return any(isinstance(r, Wait) and r.queue == "direct" for _, r in call.records(evidence.stream))
    return False


def not_done(evidence: Evidence, fault: Fault) -> bool:
    """The direct queue may still use or write a frame that is overwritten or saved."""
    return reader_not_awaited(evidence, fault) or writer_not_awaited(evidence, fault)


def unsignalled_use(evidence: Evidence, fault: Fault) -> bool:
    """Whether nothing is signalled between the early command and the late one, and something was before."""
    late, early = fault.records[:2]
    signals = _signals(evidence, "released")
    return any(index < early for index in signals) and not any(early < index < late for index in signals)


def off_by_one(evidence: Evidence, fence: str) -> bool:
    """Whether in all races the late command's queue waits for the value of ``fence`` before the one that it needs."""
    found = [_needed_and_awaited(evidence, hazard.second, hazard.first, fence) for hazard in evidence.findings.hazards]
    # A wait for 0 may be off by one, or none at all.
    waits = [(needed, awaited) for needed, awaited in found if awaited]
    return bool(waits) and all(awaited == needed - 1 for needed, awaited in waits)


def _needed_and_awaited(evidence: Evidence, late: int, early: int, fence: str) -> tuple[int, int]:
    stream, queue = evidence.stream, _queue(evidence.stream[late])
    needed = (stream[i] for i in range(early, len(stream)))
    waits = (stream[i] for i in range(late, -1, -1))
    return (
        next((r.value for r in needed if isinstance(r, Signal) and r.fence.startswith(fence)), 0),
        next((r.value for r in waits if isinstance(r, Wait) and r.queue == queue and r.fence.startswith(fence)), 0),
    )


def brought_by_number(evidence: Evidence) -> bool:
    """Whether the last page was brought into the frame whose number is that of a page that was there."""
    calls = pages_of(evidence).calls
    last = calls[-1] if calls else None
    return last is not None and any(
        copy.brings and last.before.frame_of(copy.frame) not in (None, copy.frame) for copy in last.copies
    )


def _declines(fault: Fault) -> bool:
    return fault.kind == "refused" or fault.kind == "wrong-answer:False"


def frame_0_stays_empty(evidence: Evidence, fault: Fault) -> bool:
    """A page is declined, and none at all has come into frame 0, which is free first."""
    return _declines(fault) and not any(copy.frame == 0 for copy in pages_of(evidence).brought)


def _brings(evidence: Evidence, name: str) -> list[PageCopy]:
    calls = (call for call in pages_of(evidence).calls if call.name == name)
    return [copy for call in calls for copy in call.copies if copy.brings]


def only_on_demand(evidence: Evidence, fault: Fault) -> bool:
    """A page is declined, and ``prefetch`` never brings one that ``acquire`` did not ask for."""
    return _declines(fault) and bool(_brings(evidence, "acquire")) and not _brings(evidence, "prefetch")


def pushes_nobody_out_ahead(evidence: Evidence, fault: Fault) -> bool:
    """A page is declined, and pages leave for those that are needed now, never for one that is fetched ahead."""
    return (
        _declines(fault)
        and any(copy.held is not None for copy in _brings(evidence, "acquire"))
        and all(copy.held is None for copy in _brings(evidence, "prefetch"))
    )


def nobody_leaves(evidence: Evidence, fault: Fault) -> bool:
    """A page is declined where one may go, and no page has ever left for another."""
    brought = pages_of(evidence).brought
    return _declines(fault) and bool(brought) and all(copy.held is None for copy in brought)


def own_wait(evidence: Evidence, fault: Fault) -> bool:
    """Whether the wait that the fault is about is one of the student's own lines."""
    record = evidence.stream[fault.records[0]] if fault.records else None
    return isinstance(record, Wait) and record.where in evidence.lines


def waits_for_saved(evidence: Evidence, fault: Fault) -> bool:
    """Whether the fault is about a wait of the copy queue for a page that goes home."""
    record = evidence.stream[fault.records[0]] if fault.records else None
    return isinstance(record, Wait) and record.queue == "copy" and record.fence.startswith("saved")


def saved_in_the_last_call(evidence: Evidence) -> bool:
    """Whether a page was saved in the last call."""
    return bool(pages_of(evidence).calls) and any(not copy.brings for copy in pages_of(evidence).calls[-1].copies)


def lost(evidence: Evidence, fault: Fault, way: str) -> bool:
    """Whether what was written is lost because pages were marked dirty in this ``way``."""
    return fault.kind == "dropped" and how_marked(evidence) == way
