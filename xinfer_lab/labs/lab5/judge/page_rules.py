"""What can be asked of a program that uses a page pool: that pages come and go as they should, and who waits for whom.

The names of calls are those of `NotedPool`. Which page a call is about is the program's around the answer to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xinfer_lab.device.device import WRITE_BACK
from xinfer_lab.device.records import (
    Allocate,
    Copy,
    Dispatch,
    Free,
    HostRead,
    HostWrite,
    Record,
    Signal,
    Wait,
)
from xinfer_lab.grading.programs.calls import REFUSED
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.labs.lab5.judge.page_order import too_much_order
from xinfer_lab.labs.lab5.pages import FETCHES, PageCopy, PoolCall, pages_of

__all__ = [
    "acquires_right",
    "dirty_pages_go_home",
    "fetched_ahead",
    "no_page_in_use_leaves",
    "one_wait_for_a_page",
    "pages_move_whole",
    "refuses_right",
    "submits_nothing_for_what_is_there",
    "waits_for_no_more",
]

QUEUES = {True: "copy", False: WRITE_BACK}
"""The queue of a copy to the device, and of one home."""


def _told(page: int | None) -> str:
    return "nothing" if page is None else f"page {page}"


def _moves(evidence: Evidence) -> Iterator[tuple[PoolCall, PageCopy]]:
    for call in pages_of(evidence).calls:
        for copy in call.copies:
            yield call, copy


def pages_move_whole(evidence: Evidence) -> Fault | None:
    """Within calls of the pool nothing is submitted but copies of whole pages, each between a page's home and a frame,
    on the queue of its direction; fetched is the page that the call is about, and only if it is not there."""
    for call in pages_of(evidence).calls:
        own = {copy.record for copy in call.copies}
        for index, record in call.records(evidence.stream):
            if isinstance(record, (Allocate, Free, HostWrite, HostRead)):
                return _stranger(call, index, record, "the pool's memory is allocated once, before")
            if isinstance(record, (Copy, Dispatch)) and index not in own:
                return _stranger(call, index, record, "copies between frames and the homes of pages, and nothing else")
        for copy in call.copies:
            if (fault := _wrong_move(call, copy)) is not None:
                return fault
    inside = {copy.record for call in pages_of(evidence).calls for copy in call.copies}
    for copy in pages_of(evidence).copies:
        if copy.record not in inside:
            return Fault(
                "stranger",
                "A page is copied by nobody whom the pool was asked for.",
                records=(copy.record,),
                show=False,
            )
    return None


def _stranger(call: PoolCall, index: int, record: Record, expected: str) -> Fault:
    return Fault(
        "stranger",
        f"{call.name} submits something that a pool does not need.",
        expected=expected,
        got=f"a record of kind {record.op!r} within {call.name} of page {call.page}",
        records=(index,),
        show=False,
    )


def _wrong_move(call: PoolCall, copy: PageCopy) -> Fault | None:
    verb = "brought" if copy.brings else "saved"
    if not copy.whole:
        return Fault(
            "part",
            f"Page {copy.page} is {verb} in part, or lies across two frames.",
            expected="a copy between pool.home(page) and pool.span(frame), whole",
            got="a copy of other bytes",
            records=(copy.record,),
            show=False,
        )
    if copy.queue != QUEUES[copy.brings]:
        return Fault(
            "queue",
            f"Page {copy.page} is {verb} on the {copy.queue} queue.",
            expected=f"the {QUEUES[copy.brings]} queue {'brings' if copy.brings else 'saves'} pages",
            got=f"a copy on the {copy.queue} queue, which does it in turn with its own work",
            records=(copy.record,),
        )
    there = call.before.frame_of(copy.page)
    if copy.brings and copy.page != call.page:
        return Fault(
            "other-page",
            f"{call.name} of page {call.page} brings page {copy.page}.",
            expected=f"a copy of page {call.page}",
            got=f"a copy from the home of page {copy.page}",
            records=(copy.record,),
        )
    if copy.brings and call.name not in FETCHES:
        return Fault(
            "stranger", f"{call.name} brings a page.", expected="no copy to the device", records=(copy.record,)
        )
    if copy.brings and (there is not None or sum(other.brings for other in call.copies) > 1):
        return Fault(
            "brought-twice",
            f"Page {copy.page} is brought a second time.",
            expected=f"no copy: page {copy.page} came to frame {there}, and no other page needed the frame since",
            got=f"a copy into frame {copy.frame}",
            records=(copy.record,),
            hint="pool.table.frame_of(page) is not None where it is there, or on its way.",
        )
    if not copy.brings and copy.held != copy.page:
        return Fault(
            "wrong-home",
            f"Frame {copy.frame} holds {_told(copy.held)}, and is saved as page {copy.page}.",
            expected=f"a copy to the home of {_told(copy.held)}",
            got=f"a copy to the home of page {copy.page}",
            records=(copy.record,),
        )
    return None


def no_page_in_use_leaves(evidence: Evidence) -> Fault | None:
    """No page comes into the frame of one that is acquired, and none that is acquired goes home."""
    for call, copy in _moves(evidence):
        held = copy.held
        if held is not None and call.before.pins.get(held, 0):
            users = call.before.pins[held]
            return Fault(
                "in-use",
                f"Page {held} has to leave frame {copy.frame} while it is acquired.",
                expected=f"another frame than {copy.frame}, or a refusal: page {held} was acquired "
                f"{users} {'time' if users == 1 else 'times'} more than it was released",
                got=f"page {copy.page} is copied into frame {copy.frame}" if copy.brings else "its frame is saved",
                records=(copy.record,),
            )
    return None


def dirty_pages_go_home(evidence: Evidence) -> Fault | None:
    """A page that was written goes home before its frame is given to another one, and no other page does."""
    for call, copy in _moves(evidence):
        if copy.brings and copy.dirty:
            return Fault(
                "dropped",
                f"What was written to page {copy.held} is lost: page {copy.page} comes into its frame.",
                expected=f"a copy of frame {copy.frame} to the home of page {copy.held} before that",
                got="none",
                records=(copy.record,),
            )
        if not copy.brings and not copy.dirty:
            return Fault(
                "saved-clean",
                f"Page {copy.page} is saved, and nobody has written it since it came.",
                expected="no copy: what is at home is the same",
                got=f"a copy of frame {copy.frame} to its home",
                records=(copy.record,),
                hint="pool.table.is_dirty(page) says whether it was written.",
            )
        if not copy.brings and call.name not in (*FETCHES, "evict"):
            return Fault("stranger", f"{call.name} saves a page.", expected="no copy home", records=(copy.record,))
    for call in pages_of(evidence).calls:
        page = call.page
        saved = any(not copy.brings and copy.page == page for copy in call.copies)
        if call.name == "evict" and page in call.before.dirty and not saved and not _broke(evidence, call):
            return Fault(
                "dropped",
                f"What was written to page {page} is lost when it is evicted.",
                expected=f"a copy of its frame to the home of page {page}",
                got="none",
            )
    return None


def _broke(evidence: Evidence, call: PoolCall) -> bool:
    """Whether the run broke off within ``call``, which then never came to what it has to do."""
    return evidence.raised is not None and call is pages_of(evidence).calls[-1]


def refuses_right(evidence: Evidence) -> Fault | None:
    """``acquire`` raises `PoolFull` where every frame holds a page that is acquired, submits nothing then, and never
    raises it otherwise; ``prefetch`` says whether the page is there or coming."""
    for call in pages_of(evidence).calls:
        there = call.before.frame_of(call.page) is not None
        # A call that raised something else is told about in another place.
        if call.name not in FETCHES or call.result is None:
            continue
        coming = there or call.before.room(evidence.case.shape, ahead=call.name == "prefetch")
        if call.name == "acquire" and (call.result != REFUSED) != coming:
            return _wrong_refusal(evidence, call, coming)
        if call.name == "prefetch" and bool(call.result) != coming:
            return Fault(
                f"wrong-answer:{bool(call.result)}",
                f"prefetch of page {call.page} says {bool(call.result)}.",
                expected=f"{coming}: "
                + (
                    f"page {call.page} is there, or can come"
                    if coming
                    else "every frame holds a page that is acquired, or on its way"
                ),
                got=f"{bool(call.result)}",
                records=tuple(copy.record for copy in call.copies),
                show=False,
            )
        begun = [index for index, _ in call.records(evidence.stream)]
        if not coming and begun:
            return Fault(
                "submits-full",
                f"{call.name} of page {call.page} finds no frame, and submits something all the same.",
                expected="nothing: a refusal changes nothing",
                got=_listed(evidence, begun),
                records=tuple(begun),
            )
    return None


def _wrong_refusal(evidence: Evidence, call: PoolCall, coming: bool) -> Fault:
    held = ", ".join(f"page {page} in frame {frame}" for frame, page in sorted(call.before.pages.items()))
    users = sum(1 for page in call.before.pages.values() if call.before.pins.get(page, 0))
    if coming:
        return Fault(
            "refused",
            f"acquire of page {call.page} is refused, though it need not be.",
            expected=f"a frame: {users} of {evidence.case.shape.frames} hold a page that is acquired",
            got=f"PoolFull; there are {held or 'no pages'}",
        )
    return Fault(
        "not-refused",
        f"acquire of page {call.page} finds a frame where every one is in use.",
        expected="PoolFull: every frame holds a page that is acquired",
        got=f"frame {call.result}; there are {held}",
        records=tuple(copy.record for copy in call.copies),
    )


def acquires_right(evidence: Evidence) -> Fault | None:
    """``acquire`` returns the frame that the page is in, or comes to."""
    for call in pages_of(evidence).calls:
        if call.name != "acquire" or call.result in (None, REFUSED):
            continue
        brought = [copy.frame for copy in call.copies if copy.brings]
        frame = brought[-1] if brought else call.before.frame_of(call.page)
        if call.result != frame:
            return Fault(
                "wrong-frame",
                f"acquire of page {call.page} returns frame {call.result}.",
                expected=f"frame {frame}, where page {call.page} is" if frame is not None else "a copy of it, first",
                got=f"frame {call.result}, which holds {_told(call.before.pages.get(call.result))}",
                records=tuple(copy.record for copy in call.copies),
            )
    return None


def submits_nothing_for_what_is_there(evidence: Evidence) -> Fault | None:
    """Nothing at all is submitted for a page that is there: no copy, no signal, no wait."""
    for call in pages_of(evidence).calls:
        there = call.before.frame_of(call.page) is not None
        if not there or (call.name == "acquire" and call.page not in call.before.arrived) or call.name not in FETCHES:
            continue
        begun = [index for index, _ in call.records(evidence.stream)]
        if begun:
            return Fault(
                "submits",
                f"{call.name} of page {call.page} submits something, and the page is there.",
                expected="nothing: no copy, no signal, no wait",
                got=_listed(evidence, begun),
                records=tuple(begun),
            )
    return None


def _listed(evidence: Evidence, records: Sequence[int]) -> str:
    kinds = {"wait": "a wait", "signal": "a signal", "copy": "a copy"}
    told = []
    for record in (evidence.stream[index] for index in records):
        what = kinds.get(record.op, record.op)
        if isinstance(record, (Wait, Signal)):
            what += (
                f" of the {record.queue} queue ({record.fence} {'>=' if record.op == 'wait' else '='} {record.value})"
            )
        told.append(what)
    return ", ".join(told[:4])


def one_wait_for_a_page(evidence: Evidence) -> Fault | None:
    """The direct queue waits in ``acquire`` alone, and there at most once."""
    for call in pages_of(evidence).calls:
        waits = [
            index
            for index, record in call.records(evidence.stream)
            if isinstance(record, Wait) and record.queue == "direct"
        ]
        allowed = 1 if call.name == "acquire" else 0
        if len(waits) > allowed:
            return Fault(
                "direct-waits",
                f"{call.name} makes the direct queue wait{' twice' if allowed else ''}.",
                expected="one wait, for the page's copy" if allowed else "no wait of the direct queue: acquire has it",
                got=_listed(evidence, waits),
                records=(waits[-1], *waits),
            )
    return None


def fetched_ahead(evidence: Evidence) -> Fault | None:
    """Where there is room, ``prefetch`` submits the copy itself; ``acquire`` brings what nobody asked for before."""
    for call in pages_of(evidence).calls:
        there = call.before.frame_of(call.page) is not None
        room = call.before.room(evidence.case.shape, ahead=True)
        if call.name == "prefetch" and room and not there and not call.copies and not _broke(evidence, call):
            return Fault(
                "on-demand",
                f"prefetch of page {call.page} does not start its copy.",
                expected="a copy now, ahead of the page's use",
                got="none",
                records=_next_copy(evidence, call.page, call.call.end),
            )
    return None


def _next_copy(evidence: Evidence, page: int, begin: int) -> tuple[int, ...]:
    later = (copy.record for copy in pages_of(evidence).brought if copy.page == page and copy.record >= begin)
    return tuple(record for record, _ in zip(later, range(1), strict=False))


def waits_for_no_more(evidence: Evidence) -> Fault | None:
    """Nothing orders two commands of different queues but what their pages and frames need."""
    found = too_much_order(evidence)
    if found is None:
        return None
    first, second, wait = found
    names = [getattr(evidence.stream[index], "label", "") or f"record {index}" for index in (first, second)]
    queues = [getattr(evidence.stream[index], "queue", "") for index in (first, second)]
    fence = getattr(evidence.stream[wait], "fence", "").partition(".")[0] if wait is not None else ""
    return Fault(
        f"no-overlap:{fence}",
        f"'{names[1]}' cannot overlap '{names[0]}'.",
        expected=f"the {queues[1]} queue goes on while the {queues[0]} queue works: the two share no page and no frame",
        got="a wait puts one after the other",
        records=(second, first) if wait is None else (wait, second, first),
        hint="Wait for the value that was noted for this page or this frame, and for no later one.",
    )
