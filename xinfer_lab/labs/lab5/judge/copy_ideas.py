"""Lab 5: the wrong ideas that any of the pool's parts may show, and those about copies: `prefetch` and `evict`."""

from __future__ import annotations

from xinfer_lab.device.device import WRITE_BACK
from xinfer_lab.grading.programs.verify_program import Named
from xinfer_lab.labs.lab5.judge import signs
from xinfer_lab.labs.lab5.judge.notes import BEFORE, ONCE
from xinfer_lab.labs.lab5.pages import pages_of

__all__ = ["DECLINES", "EVICT_IDEAS", "GENERAL", "ON_ITS_WAY", "PREFETCH_IDEAS", "TOO_EAGER", "VALUE_BEFORE"]

GENERAL = (
    Named(
        "It spins",
        "Asking again and again changes nothing: a frame is free when somebody releases a page, and that is for the "
        "same program to do. Say at once that there is none.",
        lambda evidence, fault: signs.raised(fault, "AnswerTimeout"),
        instead_of_hint=True,
    ),
    Named(
        "Another device",
        "The notebook's own `device` is left over from the cells above. Use what you were given: pool.device.",
        lambda evidence, fault: fault.kind.startswith("raised:") and "another device" in fault.got,
        instead_of_hint=True,
    ),
    Named(
        "The pool's table and policy are not yours here",
        "A check of one function puts the course's own table and policy beside it: they have the calls of Tasks 2 and "
        "3, and neither what your classes store (entries, owners, ring, marked) nor what you added to them. Ask with "
        "those calls: pool.table.frame_of(page), pool.table.state(page), and so on.",
        signs.reaches_into_a_given_class,
        instead_of_hint=True,
    ),
    Named(
        "Nothing is returned",
        "A function without return gives back None. Its docstring says what it has to return.",
        lambda evidence, fault: signs.raised(fault, "TypeError") and fault.got.endswith("but returned None"),
    ),
    Named(
        "The wrong queue signals",
        "A signal says that all that was submitted to its own queue before it is done, and nothing of the other "
        "queues: the one that did the work signals.",
        lambda evidence, fault: (
            fault.kind == "hazard:wrong-signaller" or (signs.raised(fault, "FenceError") and "belongs to" in fault.got)
        ),
    ),
    Named(
        "A fence value is used twice",
        "Values only grow: a wait could not tell the second from the first. The next one is fence.last_submitted + 1.",
        lambda evidence, fault: signs.raised(fault, "FenceError") and "must be greater" in fault.got,
    ),
    Named(
        "Another value is noted than signalled",
        "Whoever waits goes by the note. It has to be the very value that is signalled behind this command.",
        signs.signalled_another_value,
        instead_of_hint=True,
    ),
    Named(
        "The wrong queue waits",
        "A wait holds back the queue that it is given to. Who would run too far? That queue has to wait; one that "
        "waits for its own signal waits for nothing.",
        lambda evidence, fault: fault.kind == "hazard:self-wait",
    ),
    Named(
        "The host waits in place of a queue",
        "The bytes are right, but while the host blocks it submits nothing, and every copy ahead comes to an end.",
        lambda evidence, fault: fault.kind == "host-blocks",
    ),
)

VALUE_BEFORE = (
    "The value that is noted has to be the one that is signalled behind this very command. The one before says "
    "only that what came before is done."
)

DECLINES = (
    Named(
        "Frame 0 is a frame",
        "make_room gives the frame's number, and 0 is one of them, though it counts as false in an `if`. There is no "
        "room where it gives None: `is None`.",
        signs.frame_0_stays_empty,
    ),
    Named(
        "Nothing is fetched ahead",
        "What is asked ahead of its use is declined, whatever room there is. `ahead` is for make_room to know, and "
        "nothing else depends on it.",
        signs.only_on_demand,
    ),
    Named(
        "No page leaves for one that is fetched ahead",
        "A page that nobody uses may go for it, if it is not on its way itself: make_room sees to both. Ask it whether "
        "a frame is free or not.",
        signs.pushes_nobody_out_ahead,
    ),
)

ON_ITS_WAY = Named(
    "A page on its way may go when another one is needed now",
    "It was fetched on a guess, and nobody has it. Ask for the frame with ahead=False where the page is needed now.",
    lambda evidence, fault: fault.kind == "refused" and signs.on_its_way(evidence, fault),
)

TOO_EAGER = Named(
    "A page that was fetched ahead has to leave for another",
    "make_room has to know that this page is not needed yet: hand `ahead` on to it. Otherwise pages that were "
    "fetched ahead push each other out before anybody has used them.",
    lambda evidence, fault: (
        fault.kind == "wrong-answer:True" or (fault.kind == "submits-full" and "a copy" in fault.got)
    ),
)

PREFETCH_IDEAS = (
    *GENERAL,
    Named(
        "The wait comes after the copy",
        "A queue takes its commands in order: what is submitted before the wait does not wait.",
        lambda evidence, fault: (
            signs.reader_not_awaited(evidence, fault) and signs.waits_behind(evidence, fault, "released")
        ),
    ),
    Named(
        "The wrong fence",
        "arrived counts what the copy queue itself has done. The frame's users are on the direct queue, and released "
        "counts them.",
        lambda evidence, fault: (
            signs.reader_not_awaited(evidence, fault)
            and not signs.waits_before(evidence, fault, "released")
            and signs.waits_before(evidence, fault, "arrived")
        ),
    ),
    Named(
        "Nobody waits for the frame's last user",
        "A page is released when its last use has been submitted, not when it is over. The copy queue has to wait "
        "before it overwrites the frame.",
        lambda evidence, fault: (
            signs.reader_not_awaited(evidence, fault) and not signs.waits(evidence, "copy", "released")
        ),
    ),
    Named(
        "A wait by the wrong number: pages and frames",
        "last_use and emptied are by frame, ready and returned by page. Wait for what was noted for this frame.",
        signs.reader_not_awaited,
    ),
    Named(
        "A page is fetched before it is home",
        "Its bytes may still be on their way: they left the device when the page was evicted. The copy queue has to "
        "wait until saved has reached returned[page].",
        signs.not_home_yet,
    ),
    Named(
        "A frame is filled before it was saved",
        "What lay there is still being copied home. The copy queue has to wait until saved has reached emptied[frame].",
        signs.not_saved_yet,
    ),
    Named(
        "The signal comes before the copy",
        "A signal says: everything submitted to this queue so far is done. The copy has to be submitted before it.",
        signs.signals_before_bringing,
    ),
    Named(
        "One fence value for two copies",
        "A copy without a signal of its own is awaited by nobody: the value before it says that the copy before has "
        "arrived. Each copy signals, behind itself.",
        signs.fewer_signals_than_copies,
    ),
    Named(
        "It has not arrived yet",
        "arrive says that whoever uses the page comes after its copy. Submitted is not arrived: acquire tells the "
        "table, once the direct queue was told to wait.",
        lambda evidence, fault: signs.copy_not_awaited(evidence, fault) and not signs.awaited_at_all(evidence, fault),
    ),
    Named(
        "Nobody knows when the page is there",
        "The value that is signalled has to be noted for the page: ready[page]. As long as it is 0, nobody waits.",
        lambda evidence, fault: (
            signs.copy_not_awaited(evidence, fault) and not signs.waits(evidence, "direct", "arrived")
        ),
    ),
    Named(
        "The value from before the signal",
        VALUE_BEFORE,
        signs.copy_not_awaited,
    ),
    Named(
        "Nothing is signalled behind the copy",
        "The direct queue has to wait for the copy, and it can wait only for what somebody signals: arrived, on the "
        "copy queue, right behind the copy.",
        lambda evidence, fault: signs.raised(fault, "EarlyWait"),
        instead_of_hint=True,
    ),
    Named(
        "The frame is never bound",
        "The table is where everybody looks: without bind the page is not there for anybody, and its frame is given "
        "away again.",
        lambda evidence, fault: signs.broke_in(evidence, fault, "acquire"),
    ),
    Named(
        "On demand",
        "A copy that begins when the page is needed cannot be hidden: the direct queue stands still for all of it. "
        "prefetch itself starts the copy.",
        lambda evidence, fault: fault.kind == "on-demand",
    ),
    TOO_EAGER,
    ON_ITS_WAY,
    Named(
        "Something is submitted where there is no frame",
        "Ask make_room first. Where it gives None there is nothing to do: no wait, no copy, no signal.",
        lambda evidence, fault: fault.kind == "submits-full",
    ),
    *DECLINES,
    Named(
        "The policy is not told",
        "A policy that never hears of a page cannot choose it: nobody may go, as far as it knows. placed(page) when "
        "the page gets its frame.",
        signs.nobody_leaves,
    ),
    Named(
        "A prefetch counts as a use",
        "used says that a page was acquired. To fetch a page ahead that is there is no use of it: nothing is "
        "submitted, and the policy is told nothing.",
        lambda evidence, fault: fault.kind == "victim" and not fault.expected.endswith("stays"),
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
        "The bytes are right, but a wait for later work puts in order what could run at the same time. Wait for "
        "what was noted for this frame, and for this page.",
        lambda evidence, fault: fault.kind.startswith("no-overlap"),
    ),
)

EVICT_IDEAS = (
    *GENERAL,
    Named(
        "The wrong direction",
        "What was written is on the device: it goes from the frame to the page's home. The other way round it is lost.",
        lambda evidence, fault: (
            fault.kind in ("stranger", "brought-twice", "other-page", "queue")
            and any(copy.brings and copy.queue == WRITE_BACK for copy in pages_of(evidence).copies)
        ),
    ),
    Named(
        "Both directions on one queue",
        "The link carries both directions at once, but one queue does one thing after the other: what goes home would "
        "hold up what comes. Copies home are the write-back queue's.",
        lambda evidence, fault: (
            fault.kind == "queue" or (signs.raised(fault, "FenceError") and "belongs to" in fault.got)
        ),
    ),
    Named(
        "The wait comes after the copy",
        "A queue takes its commands in order: what is submitted before the wait does not wait.",
        lambda evidence, fault: (
            signs.writer_not_awaited(evidence, fault) and signs.waits_behind(evidence, fault, "released")
        ),
    ),
    Named(
        "The wrong fence",
        "arrived says when the page came. Who wrote it since is counted by released.",
        lambda evidence, fault: (
            signs.writer_not_awaited(evidence, fault)
            and not signs.waits_before(evidence, fault, "released")
            and signs.waits_before(evidence, fault, "arrived")
        ),
    ),
    Named(
        "Nobody waits for the writer",
        "The direct queue may not have written the page yet. The write-back queue has to wait until released has "
        "reached last_use[frame].",
        signs.writer_not_awaited,
    ),
    Named(
        "The signal comes before the copy",
        "A signal says: everything submitted to this queue so far is done. The copy has to be submitted before it.",
        signs.signals_before_saving,
    ),
    Named(
        "The value from before the signal",
        VALUE_BEFORE,
        lambda evidence, fault: signs.copies_home_noted(evidence, fault, BEFORE),
    ),
    Named(
        "Noted the first time alone",
        "A page goes home again and again, and a frame is emptied again and again. Each copy home has a value of its "
        "own, and takes the place of the value that was noted before.",
        lambda evidence, fault: signs.copies_home_noted(evidence, fault, ONCE),
    ),
    Named(
        "A page is fetched before it is home",
        "Its bytes may still be on their way: note for the page when they are there, returned[page].",
        signs.not_home_yet,
    ),
    Named(
        "A frame is filled before it was saved",
        "What lay there is still being copied home: note for the frame when it is over, emptied[frame].",
        signs.not_saved_yet,
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
        lambda evidence, fault: signs.raised(fault, "PageError") and signs.saved_in_the_last_call(evidence),
    ),
    Named(
        "A page's number is not a frame's",
        "unbind gives the frame back that the page had: return that one.",
        lambda evidence, fault: (
            signs.raised(fault, "BufferRangeError", "IndexError")
            or fault.kind == "in-use"
            or (signs.raised(fault, "PageError") and signs.brought_by_number(evidence))
        ),
    ),
    Named(
        "The policy is not told",
        "The policy still counts the page and will choose it again. removed(page) when it gives its frame up.",
        lambda evidence, fault: signs.raised(fault, "PageError") and "unbind" in signs.raised_at(evidence),
    ),
    Named(
        "The frame is never given up",
        "As long as the table has the page there, its frame can be bound to nobody else: unbind(page).",
        lambda evidence, fault: signs.raised(fault, "PageError") or fault.kind == "wrong-frame",
    ),
    Named(
        "Another queue waits in evict",
        "The copy queue waits in prefetch, for what evict has noted, and only before it fills this very frame or "
        "brings this very page. In evict the write-back queue alone waits.",
        lambda evidence, fault: (
            fault.kind.startswith("no-overlap")
            and signs.waits_for_saved(evidence, fault)
            and signs.own_wait(evidence, fault)
        ),
        instead_of_hint=True,
    ),
    Named(
        "Noted, and not saved",
        "prefetch waits for what evict has noted. A page that nobody wrote does not go home, so there is nothing to "
        "note: emptied and returned change where a page is saved, for its frame and for it, and nowhere else.",
        lambda evidence, fault: fault.kind == "no-overlap:saved" and signs.waits_for_saved(evidence, fault),
        instead_of_hint=True,
    ),
    Named(
        "Waits for more than its frame",
        "The bytes are right, but a wait for later work puts in order what could run at the same time. Wait for what "
        "was noted for this frame.",
        lambda evidence, fault: fault.kind.startswith("no-overlap"),
    ),
)
