"""Lab 5: the signs in a run by which its judges recognise a wrong idea: each looks at the evidence and the fault."""

from __future__ import annotations

from xinfer_lab.device.device import WRITE_BACK
from xinfer_lab.device.records import Copy, Record, Signal, Wait
from xinfer_lab.grading.programs.calls import REFUSED
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.grading.programs.verify import Named

__all__ = ["ACQUIRE_IDEAS", "BLAME", "EVICT_IDEAS", "GATE_IDEAS", "PREFETCH_IDEAS", "RELEASE_IDEAS"]

BLAME = {
    "hazard:read-after-write": "acquire",
    "hazard:write-after-read": "prefetch",
    "hazard:write-after-write": "prefetch",
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
}
"""The function where the remedy of a fault belongs, by the beginning of the fault's kind."""

# Which race it is, by who comes second and who comes first


def _queue(record: Record) -> str:
    return getattr(record, "queue", "host")


def race(evidence: Evidence, fault: Fault, second: str, first: str, where: str = "frame") -> bool:
    """Whether the fault is a race of a command of the queue ``second`` with an earlier one of ``first``, about a frame
    or a home."""
    if not fault.kind.startswith("hazard:") or len(fault.records) < 2:
        return False
    late, early = (evidence.stream[index] for index in fault.records[:2])
    if (_queue(late), _queue(early)) != (second, first):
        return False
    return where == "any" or _shared(evidence, late, early) == where


def _shared(evidence: Evidence, late: Record, early: Record) -> str:
    home = evidence.case.shape.home
    both = (late, early)
    return (
        "home"
        if all(isinstance(record, Copy) and home in (record.src.buffer, record.dst.buffer) for record in both)
        and _overlap_at(both, home)
        else "frame"
    )


def _overlap_at(records: tuple[Record, ...], buffer: str) -> bool:
    spans = []
    for record in records:
        assert isinstance(record, Copy)
        spans.append(record.src if record.src.buffer == buffer else record.dst)
    return spans[0].overlaps(spans[1])


def copy_not_awaited(evidence: Evidence, fault: Fault) -> bool:
    """The direct queue uses a page before its copy."""
    return race(evidence, fault, "direct", "copy")


def reader_not_awaited(evidence: Evidence, fault: Fault) -> bool:
    """A page comes into a frame that the direct queue may still use."""
    return race(evidence, fault, "copy", "direct")


def writer_not_awaited(evidence: Evidence, fault: Fault) -> bool:
    """A frame is saved before the direct queue has written it."""
    return race(evidence, fault, WRITE_BACK, "direct")


def not_saved_yet(evidence: Evidence, fault: Fault) -> bool:
    """A page comes into a frame whose contents are still being saved."""
    return race(evidence, fault, "copy", WRITE_BACK)


def not_home_yet(evidence: Evidence, fault: Fault) -> bool:
    """A page is brought before its own bytes are home."""
    return race(evidence, fault, "copy", WRITE_BACK, "home")


def _waits(evidence: Evidence, queue: str, fence: str) -> list[int]:
    """The values above 0 that ``queue`` waits for, of fences whose names begin with ``fence``."""
    return [
        record.value
        for record in evidence.stream
        if isinstance(record, Wait) and record.queue == queue and record.fence.startswith(fence) and record.value
    ]


def _signals(evidence: Evidence, fence: str) -> list[int]:
    return [i for i, r in enumerate(evidence.stream) if isinstance(r, Signal) and r.fence.startswith(fence)]


def _copies(evidence: Evidence, brings: bool) -> list[int]:
    return [copy.record for copy in evidence.pages.copies if copy.brings == brings]


def _signals_first(evidence: Evidence, fence: str, brings: bool) -> bool:
    """Whether the first copy is submitted only behind the first signal of the fence that counts copies."""
    signals, copies = _signals(evidence, fence), _copies(evidence, brings)
    return bool(signals and copies) and signals[0] < copies[0]


def signals_before_bringing(evidence: Evidence, fault: Fault) -> bool:
    return copy_not_awaited(evidence, fault) and _signals_first(evidence, "arrived", True)


def signals_before_saving(evidence: Evidence, fault: Fault) -> bool:
    late = not_saved_yet(evidence, fault) or not_home_yet(evidence, fault)
    return late and _signals_first(evidence, "saved", False)


def _waits_behind(evidence: Evidence, fault: Fault, fence: str) -> bool:
    """Whether the queue of the late command waits for ``fence`` right after that command."""
    late = fault.records[0]
    queue = _queue(evidence.stream[late])
    behind = (evidence.stream[i] for i in range(late + 1, len(evidence.stream)))
    following = next((record for record in behind if _queue(record) == queue), None)
    return isinstance(following, Wait) and following.fence.startswith(fence) and following.value > 0


def fewer_signals_than_copies(evidence: Evidence, fault: Fault) -> bool:
    brought = [index for index in _copies(evidence, True) if fault.records and index <= max(fault.records)]
    return (
        copy_not_awaited(evidence, fault)
        and len(_signals(evidence, "arrived")) > 0
        and (sum(index <= max(fault.records) for index in _signals(evidence, "arrived")) < len(brought))
    )


def _waits_before(evidence: Evidence, fault: Fault, fence: str) -> bool:
    """Whether the queue of the late command waits for some value of ``fence`` before that command."""
    late = fault.records[0]
    queue = _queue(evidence.stream[late])
    return any(
        isinstance(record, Wait) and _queue(record) == queue and record.fence.startswith(fence)
        for record in (evidence.stream[i] for i in range(late))
    )


def raised(fault: Fault, *kinds: str) -> bool:
    return fault.kind in {f"raised:{kind}" for kind in kinds}


def _last_call(evidence: Evidence) -> str:
    return evidence.calls[-1].name if evidence.calls else ""


def _broke_in(evidence: Evidence, fault: Fault, *calls: str) -> bool:
    return raised(fault, "PageError") and _last_call(evidence) in calls


def _full_when_it_broke(evidence: Evidence) -> bool:
    calls = evidence.pages.calls
    last = calls[-1] if calls else None
    return (
        last is not None
        and last.before.frame_of(last.page) is None
        and not last.before.room(evidence.case.shape, ahead=False)
    )


def _brought_in_the_last_call(evidence: Evidence) -> bool:
    return bool(evidence.pages.calls) and any(copy.brings for copy in evidence.pages.calls[-1].copies)


def _self_wait_of(evidence: Evidence, fault: Fault) -> bool:
    return fault.kind == "hazard:self-wait"


def _on_its_way(evidence: Evidence, fault: Fault) -> bool:
    """Whether a page on its way, acquired by nobody, could have gone when the refusal came."""
    for call in evidence.pages.calls:
        if call.name == "acquire" and call.result == REFUSED and call.before.room(evidence.case.shape, ahead=False):
            held = call.before
            return any(not held.pins.get(page, 0) and page not in held.arrived for page in held.pages.values())
    return False


GENERAL = (
    Named(
        "It spins",
        "Asking again and again changes nothing: a frame is free when somebody releases a page, and that is for the "
        "same program to do. Say at once that there is none.",
        lambda evidence, fault: raised(fault, "AnswerTimeout"),
        instead_of_hint=True,
    ),
    Named(
        "Another device",
        "The notebook's own `device` is left over from the cells above. Use what you were given: pool.device.",
        lambda evidence, fault: fault.kind.startswith("raised:") and "another device" in fault.got,
        instead_of_hint=True,
    ),
    Named(
        "Nothing is returned",
        "A function without return gives back None. Its docstring says what it has to return.",
        lambda evidence, fault: raised(fault, "TypeError") and fault.got.endswith("but returned None"),
    ),
    Named(
        "The wrong queue signals",
        "A signal says that all that was submitted to its own queue before it is done, and nothing of the other "
        "queues: the one that did the work signals.",
        lambda evidence, fault: (
            fault.kind == "hazard:wrong-signaller" or (raised(fault, "FenceError") and "belongs to" in fault.got)
        ),
    ),
    Named(
        "A fence value is used twice",
        "Values only grow: a wait could not tell the second from the first. The next one is fence.last_submitted + 1.",
        lambda evidence, fault: raised(fault, "FenceError") and "must be greater" in fault.got,
    ),
    Named(
        "The wrong queue waits",
        "A wait holds back the queue that it is given to. Who would run too far? That queue has to wait; one that "
        "waits for its own signal waits for nothing.",
        _self_wait_of,
    ),
    Named(
        "The host waits in place of a queue",
        "The bytes are right, but while the host blocks it submits nothing, and every copy ahead comes to an end.",
        lambda evidence, fault: fault.kind == "host-blocks",
    ),
)

_VALUE_BEFORE = (
    "The value that is noted has to be the one that is signalled behind this very command. The one before says "
    "only that what came before is done."
)

PREFETCH_IDEAS = (
    *GENERAL,
    Named(
        "The wait comes after the copy",
        "A queue takes its commands in order: what is submitted before the wait does not wait.",
        lambda evidence, fault: reader_not_awaited(evidence, fault) and _waits_behind(evidence, fault, "released"),
    ),
    Named(
        "The wrong fence",
        "arrived counts what the copy queue itself has done. The frame's users are on the direct queue, and released "
        "counts them.",
        lambda evidence, fault: (
            reader_not_awaited(evidence, fault)
            and not _waits_before(evidence, fault, "released")
            and _waits_before(evidence, fault, "arrived")
        ),
    ),
    Named(
        "Nobody waits for the frame's last user",
        "A page is released when its last use has been submitted, not when it is over. The copy queue has to wait "
        "before it overwrites the frame.",
        lambda evidence, fault: reader_not_awaited(evidence, fault) and not _waits(evidence, "copy", "released"),
    ),
    Named(
        "A wait by the wrong number: pages and frames",
        "last_use and emptied are by frame, ready and returned by page. The frame that is overwritten counts here.",
        reader_not_awaited,
    ),
    Named(
        "A page is fetched before it is home",
        "Its bytes may still be on their way: they left the device when the page was evicted. The copy queue has to "
        "wait until saved has reached returned[page].",
        not_home_yet,
    ),
    Named(
        "A frame is filled before it was saved",
        "What lay there is still being copied home. The copy queue has to wait until saved has reached emptied[frame].",
        not_saved_yet,
    ),
    Named(
        "The signal comes before the copy",
        "A signal says: everything submitted to this queue so far is done. The copy has to be submitted before it.",
        signals_before_bringing,
    ),
    Named(
        "One fence value for two copies",
        "A copy without a signal of its own is awaited by nobody: the value before it says that the copy before has "
        "arrived. Each copy signals, behind itself.",
        fewer_signals_than_copies,
    ),
    Named(
        "The value from before the signal",
        _VALUE_BEFORE,
        copy_not_awaited,
    ),
    Named(
        "Nothing is signalled behind the copy",
        "The direct queue has to wait for the copy, and it can wait only for what somebody signals: arrived, on the "
        "copy queue, right behind the copy.",
        lambda evidence, fault: raised(fault, "EarlyWait"),
        instead_of_hint=True,
    ),
    Named(
        "The frame is never bound",
        "The table is where everybody looks: without bind the page is not there for anybody, and its frame is given "
        "away again.",
        lambda evidence, fault: _broke_in(evidence, fault, "acquire") or fault.kind == "brought-twice-unbound",
    ),
    Named(
        "On demand",
        "A copy that begins when the page is needed cannot be hidden: the direct queue stands still for all of it. "
        "prefetch itself starts the copy.",
        lambda evidence, fault: fault.kind == "on-demand",
    ),
    Named(
        "A page that was fetched ahead has to leave for another",
        "make_room has to know that this page is not needed yet: hand `ahead` on to it. Otherwise pages that were "
        "fetched ahead push each other out before anybody has used them.",
        lambda evidence, fault: fault.kind == "submits" or (fault.kind == "wrong-answer" and fault.got == "True"),
    ),
    Named(
        "The policy is not told",
        "A policy that never hears of a page cannot choose it: nobody may go, as far as it knows. placed(page) when "
        "the page gets its frame.",
        lambda evidence, fault: fault.kind in ("refused", "wrong-answer"),
    ),
    Named(
        "The copy queue has nothing to do",
        "The direct queue would bring the page in turn with its own work, and nothing overlaps. Copies to the device "
        "are the copy queue's.",
        lambda evidence, fault: fault.kind == "queue",
    ),
    Named(
        "The page comes into another frame than it was given",
        "make_room says which frame is free, and the table is told that one. A copy into any other overwrites "
        "somebody's page.",
        lambda evidence, fault: fault.kind in ("wrong-frame", "in-use"),
    ),
    Named(
        "Waits for more than its frame",
        "The bytes are right, but a wait for later work puts in order what could run at the same time. Wait for what "
        "was noted for this frame and this page.",
        lambda evidence, fault: fault.kind == "no-overlap",
    ),
)

ACQUIRE_IDEAS = (
    *GENERAL,
    Named(
        "The wrong fence",
        "released counts what the direct queue itself has done, and it is past that anyway. The copies are counted by "
        "arrived.",
        lambda evidence, fault: (
            copy_not_awaited(evidence, fault)
            and not _waits(evidence, "direct", "arrived")
            and _waits_before(evidence, fault, "released")
        ),
    ),
    Named(
        "Nobody waits for the copy",
        "Submitted is not arrived. The direct queue starts as soon as it can, whatever the copy queue is at, and "
        "whoever asked for the copy.",
        lambda evidence, fault: copy_not_awaited(evidence, fault) and not _awaited_at_all(evidence, fault),
    ),
    Named(
        "The wait is not for this page's copy",
        "The value that is waited for belongs to an earlier copy. pool.ready[page] was noted for this one.",
        copy_not_awaited,
    ),
    Named(
        "One pin for two users",
        "Each acquire is one user more. If the second one is not counted, the first release ends both uses, and the "
        "page may leave while it is read.",
        lambda evidence, fault: fault.kind in ("in-use", "not-refused"),
    ),
    Named(
        "Acquired and not pinned",
        "The pin is what keeps the page: without it the policy may choose it at once, while it is being used.",
        lambda evidence, fault: _broke_in(evidence, fault, "release"),
    ),
    Named(
        "A refusal is not looked at",
        "prefetch says whether the page is coming. Where it says False there is no frame, and nothing to wait for: "
        "acquire has to raise PoolFull.",
        lambda evidence, fault: raised(fault, "PageError", "EarlyWait", "TypeError") and _full_when_it_broke(evidence),
    ),
    Named(
        "A migrating page is never read",
        "First the direct queue is told to wait for the copy, then the table that the page has arrived, then it is "
        "pinned: in this order the table refuses nothing.",
        lambda evidence, fault: _broke_in(evidence, fault, "acquire"),
    ),
    Named(
        "A page on its way may go when another one is needed now",
        "It was fetched on a guess, and nobody has it. Ask for the frame with ahead=False.",
        lambda evidence, fault: fault.kind == "refused" and _on_its_way(evidence, fault),
    ),
    Named(
        "A page's number is not a frame's",
        "The table says in which frame the page lies.",
        lambda evidence, fault: fault.kind == "wrong-frame" or raised(fault, "BufferRangeError", "StreamError"),
    ),
    Named(
        "Waits although the page is there",
        "A page whose state is IN_DEVICE was waited for when it came. Nothing is submitted for it any more.",
        lambda evidence, fault: fault.kind in ("submits", "direct-waits"),
    ),
    Named(
        "Nobody knows that the page was written",
        "A page that is acquired to be written is dirty: mark_dirty. Otherwise it is given up as if its home had the "
        "same bytes.",
        lambda evidence, fault: fault.kind == "dropped",
    ),
    Named(
        "Every page counts as written",
        "Only those that are acquired with write=True are dirty. A copy home that nobody needs costs as much as a copy "
        "that somebody does.",
        lambda evidence, fault: fault.kind == "saved-clean",
    ),
    Named(
        "Waits for more than its page",
        "The bytes are right, but a wait for the newest copy holds the direct queue back until all that was fetched "
        "ahead has come.",
        lambda evidence, fault: fault.kind == "no-overlap",
    ),
)

RELEASE_IDEAS = (
    *GENERAL,
    Named(
        "Nothing is signalled behind the use",
        "Somebody will have to wait until the direct queue is done with this page, and can wait only for what is "
        "signalled: released, on the direct queue, now.",
        lambda evidence, fault: raised(fault, "EarlyWait"),
        instead_of_hint=True,
    ),
    Named(
        "A use that nobody signals",
        "Each use comes after the signal of the one before, so each release signals anew, with a value of its own.",
        lambda evidence, fault: _not_done(evidence, fault) and _unsignalled_use(evidence, fault),
    ),
    Named(
        "A wait by the wrong number: pages and frames",
        "last_use is by frame: whoever overwrites the frame looks there. The table says in which frame the page lies.",
        lambda evidence, fault: (
            _not_done(evidence, fault)
            and not _off_by_one(evidence, "released")
            and bool(_waits(evidence, "copy", "released") or _waits(evidence, WRITE_BACK, "released"))
        ),
    ),
    Named(
        "Nobody knows when the frame was used last",
        "The value that is signalled has to be noted for the frame: last_use[frame]. As long as it is 0, nobody waits.",
        lambda evidence, fault: (
            _not_done(evidence, fault)
            and not (_waits(evidence, "copy", "released") or _waits(evidence, WRITE_BACK, "released"))
        ),
    ),
    Named(
        "The value from before the signal",
        _VALUE_BEFORE,
        lambda evidence, fault: _not_done(evidence, fault),
    ),
    Named(
        "A released page stays",
        "release says that the page may go, not that it has to: it stays until its frame is needed, and may be used "
        "again without a copy.",
        lambda evidence, fault: fault.kind in ("stranger", "brought-twice"),
    ),
    Named(
        "Pins are never given back",
        "Each release takes one pin away. As long as they stay, no page may leave, and the pool is full for good.",
        lambda evidence, fault: fault.kind in ("refused", "wrong-answer") or _broke_in(evidence, fault, "evict"),
    ),
    Named(
        "One release ends the uses of others",
        "Whoever acquired the page besides still uses it. One release takes one pin away.",
        lambda evidence, fault: fault.kind == "in-use" or _broke_in(evidence, fault, "release"),
    ),
    Named(
        "Waits where nobody has to yet",
        "Whoever overwrites the frame will wait, if anybody ever does. release only signals.",
        lambda evidence, fault: fault.kind in ("no-overlap", "waits-early"),
    ),
)

EVICT_IDEAS = (
    *GENERAL,
    Named(
        "The wrong direction",
        "What was written is on the device: it goes from the frame to the page's home. The other way round it is lost.",
        lambda evidence, fault: (
            fault.kind in ("stranger", "brought-twice", "other-page", "queue")
            and any(copy.brings and copy.queue == WRITE_BACK for copy in evidence.pages.copies)
        ),
    ),
    Named(
        "Both directions on one queue",
        "The link carries both directions at once, but one queue does one thing after the other: what goes home would "
        "hold up what comes. Copies home are the write-back queue's.",
        lambda evidence, fault: fault.kind == "queue" or (raised(fault, "FenceError") and "belongs to" in fault.got),
    ),
    Named(
        "The wait comes after the copy",
        "A queue takes its commands in order: what is submitted before the wait does not wait.",
        lambda evidence, fault: writer_not_awaited(evidence, fault) and _waits_behind(evidence, fault, "released"),
    ),
    Named(
        "The wrong fence",
        "arrived says when the page came. Who wrote it since is counted by released.",
        lambda evidence, fault: (
            writer_not_awaited(evidence, fault)
            and not _waits_before(evidence, fault, "released")
            and _waits_before(evidence, fault, "arrived")
        ),
    ),
    Named(
        "Nobody waits for the writer",
        "The direct queue may not have written the page yet. The write-back queue has to wait until released has "
        "reached last_use[frame].",
        writer_not_awaited,
    ),
    Named(
        "The signal comes before the copy",
        "A signal says: everything submitted to this queue so far is done. The copy has to be submitted before it.",
        signals_before_saving,
    ),
    Named(
        "The value from before the signal",
        _VALUE_BEFORE,
        lambda evidence, fault: (
            (not_saved_yet(evidence, fault) or not_home_yet(evidence, fault)) and _off_by_one(evidence, "saved")
        ),
    ),
    Named(
        "A page is fetched before it is home",
        "Its bytes may still be on their way: note for the page when they are there, returned[page].",
        not_home_yet,
    ),
    Named(
        "A frame is filled before it was saved",
        "What lay there is still being copied home: note for the frame when it is over, emptied[frame].",
        not_saved_yet,
    ),
    Named(
        "What was written is dropped",
        "The device has the only copy of it. A dirty page goes home before its frame is used again.",
        lambda evidence, fault: fault.kind == "dropped",
    ),
    Named(
        "Clean pages are saved",
        "Home has the same bytes. Each copy that nobody needs takes the link away from one that somebody does.",
        lambda evidence, fault: fault.kind == "saved-clean",
    ),
    Named(
        "A page that was saved is clean",
        "Its copy home was submitted: mark_clean. The table lets no dirty page go.",
        lambda evidence, fault: raised(fault, "PageError") and _saved_in_the_last_call(evidence),
    ),
    Named(
        "A page's number is not a frame's",
        "unbind gives the frame back that the page had: return that one.",
        lambda evidence, fault: (
            raised(fault, "BufferRangeError", "IndexError")
            or fault.kind == "in-use"
            or (raised(fault, "PageError") and _brought_by_number(evidence))
        ),
    ),
    Named(
        "The policy is not told",
        "The policy still counts the page and will choose it again. removed(page) when it gives its frame up.",
        lambda evidence, fault: raised(fault, "PageError") and "unbind" in _raised_at(evidence),
    ),
    Named(
        "The frame is never given up",
        "As long as the table has the page there, its frame can be bound to nobody else: unbind(page).",
        lambda evidence, fault: raised(fault, "PageError") or fault.kind == "wrong-frame",
    ),
    Named(
        "Waits for more than its frame",
        "The bytes are right, but a wait for later work puts in order what could run at the same time. Wait for what "
        "was noted for this frame.",
        lambda evidence, fault: fault.kind == "no-overlap",
    ),
)
GATE_IDEAS = (
    *GENERAL,
    Named(
        "A page is used before it has come",
        "acquire lets the direct queue wait for ready[page], which prefetch noted behind the copy.",
        copy_not_awaited,
    ),
    Named(
        "A frame is filled while it is still used",
        "release signals and notes last_use[frame]; prefetch lets the copy queue wait for it before it overwrites.",
        reader_not_awaited,
    ),
    Named(
        "A page is saved before it was written",
        "evict lets the write-back queue wait for last_use[frame].",
        writer_not_awaited,
    ),
    Named(
        "A page is fetched before it is home",
        "evict notes returned[page]; prefetch lets the copy queue wait for it.",
        not_home_yet,
    ),
    Named(
        "A frame is filled before it was saved",
        "evict notes emptied[frame]; prefetch lets the copy queue wait for it.",
        not_saved_yet,
    ),
    Named(
        "The parts do not agree with each other",
        "The table refuses what it is told: one part says what another has said already, or has to say first.",
        lambda evidence, fault: raised(fault, "PageError"),
    ),
    Named(
        "Another page leaves than the policy's",
        "Your Clock chooses others than CLOCK would: is it told of everything, placed, used, removed?",
        lambda evidence, fault: fault.kind in ("hit-rate", "refused", "wrong-answer"),
    ),
    Named(
        "Waits for more than has to be",
        "The bytes are right, but a wait for later work puts in order what could run at the same time.",
        lambda evidence, fault: fault.kind == "no-overlap",
    ),
)


def _raised_at(evidence: Evidence) -> str:
    """The student's line that raised, or ''."""
    return (evidence.raised[3] or "") if evidence.raised else ""


def _awaited_at_all(evidence: Evidence, fault: Fault) -> bool:
    """Whether the direct queue was told to wait in the call that acquired what the late command uses."""
    late = fault.records[0]
    acquired = [call for call in evidence.pages.calls if call.name == "acquire" and call.call.begin <= late]
    wanted = {use.page for use in evidence.pages.uses if use.record == late}
    for call in reversed(acquired):
        if call.page in wanted:
            return any(isinstance(r, Wait) and r.queue == "direct" for _, r in call.records(evidence.stream))
    return False


def _not_done(evidence: Evidence, fault: Fault) -> bool:
    return reader_not_awaited(evidence, fault) or writer_not_awaited(evidence, fault)


def _unsignalled_use(evidence: Evidence, fault: Fault) -> bool:
    """Whether nothing is signalled between the early command and the late one, and something was before."""
    late, early = fault.records[:2]
    signals = _signals(evidence, "released")
    return any(index < early for index in signals) and not any(early < index < late for index in signals)


def _off_by_one(evidence: Evidence, fence: str) -> bool:
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


def _brought_by_number(evidence: Evidence) -> bool:
    """Whether the last page was brought into the frame whose number is that of a page that was there."""
    last = evidence.pages.calls[-1]
    return any(copy.brings and last.before.frame_of(copy.frame) not in (None, copy.frame) for copy in last.copies)


def _saved_in_the_last_call(evidence: Evidence) -> bool:
    return bool(evidence.pages.calls) and any(not copy.brings for copy in evidence.pages.calls[-1].copies)
