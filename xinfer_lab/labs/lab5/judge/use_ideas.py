"""Lab 5: the wrong ideas about uses, `acquire` and `release`, and those that the gate may show."""

from __future__ import annotations

from xinfer_lab.device.device import WRITE_BACK
from xinfer_lab.grading.programs.verify_program import Named
from xinfer_lab.labs.lab5.judge import signs
from xinfer_lab.labs.lab5.judge.copy_ideas import DECLINES, GENERAL, ON_ITS_WAY, TOO_EAGER, VALUE_BEFORE
from xinfer_lab.labs.lab5.judge.notes import ARRIVING, FIRST_USER, ONCE, READER_CLEANS

__all__ = ["ACQUIRE_IDEAS", "GATE_IDEAS", "RELEASE_IDEAS"]

ACQUIRE_IDEAS = (
    *GENERAL,
    Named(
        "The wrong fence",
        "released counts what the direct queue itself has done, and it is past that anyway. The copies are counted by "
        "arrived.",
        lambda evidence, fault: (
            signs.copy_not_awaited(evidence, fault)
            and not signs.waits(evidence, "direct", "arrived")
            and signs.waits_before(evidence, fault, "released")
        ),
    ),
    Named(
        "Nobody waits for the copy",
        "Submitted is not arrived. The direct queue starts as soon as it can, whatever the copy queue is at, and "
        "whoever asked for the copy.",
        lambda evidence, fault: signs.copy_not_awaited(evidence, fault) and not signs.awaited_at_all(evidence, fault),
    ),
    Named(
        "The wait is not for this page's copy",
        "The value that is waited for belongs to an earlier copy. pool.ready[page] was noted for this one.",
        signs.copy_not_awaited,
    ),
    Named(
        "One pin for two users",
        "Each acquire is one user more. If the second one is not counted, the first release ends both uses, and the "
        "page may leave while it is read.",
        lambda evidence, fault: fault.kind in ("in-use", "not-refused"),
    ),
    Named(
        "Not every acquire is pinned",
        "Each acquire is one user more, and its release takes that one away. The pin is what keeps the page: without "
        "it the policy may choose it at once, while it is being used.",
        lambda evidence, fault: signs.broke_in(evidence, fault, "release"),
    ),
    Named(
        "A refusal is not looked at",
        "prefetch says whether the page is coming. Where it says False there is no frame, and nothing to wait for: "
        "acquire has to raise PoolFull.",
        lambda evidence, fault: (
            signs.raised(fault, "PageError", "EarlyWait", "TypeError") and signs.full_when_it_broke(evidence)
        ),
    ),
    Named(
        "Written by nobody yet",
        "The table marks a page dirty for those who have it: pin it first, then mark_dirty.",
        lambda evidence, fault: signs.raised(fault, "PageError") and "written by nobody" in fault.got,
    ),
    Named(
        "A migrating page is never read",
        "First the direct queue is told to wait for the copy, then the table that the page has arrived, then it is "
        "pinned: in this order the table refuses nothing.",
        lambda evidence, fault: signs.broke_in(evidence, fault, "acquire"),
    ),
    ON_ITS_WAY,
    Named(
        "A page's number is not a frame's",
        "The table says in which frame the page lies.",
        lambda evidence, fault: fault.kind == "wrong-frame" or signs.raised(fault, "BufferRangeError", "StreamError"),
    ),
    Named(
        "Waits although the page is there",
        "A page whose state is IN_DEVICE was waited for when it came. Nothing is submitted for it any more.",
        lambda evidence, fault: fault.kind == "submits" and "a wait" in fault.got,
    ),
    Named(
        "One wait is enough",
        "A queue that has waited for a value is past it for good.",
        lambda evidence, fault: fault.kind == "direct-waits",
    ),
    Named(
        "More pins than acquires",
        "Each acquire is one user more, and its release takes one away. A page that is pinned twice for one acquire "
        "never loses its last user, and can never leave.",
        signs.nobody_leaves,
    ),
    Named(
        "A reader makes the page clean",
        "Dirty ends with the copy home, which evict makes. Whoever acquires the page to read it changes nothing.",
        lambda evidence, fault: signs.lost(evidence, fault, READER_CLEANS),
    ),
    Named(
        "Only the first user makes a page dirty",
        "A page may have users already when somebody acquires it to write: mark_dirty with write=True, whoever uses "
        "it besides.",
        lambda evidence, fault: signs.lost(evidence, fault, FIRST_USER),
    ),
    Named(
        "Only a page that has just come is made dirty",
        "A page may be found in its frame and be written then: mark_dirty with write=True in every acquire.",
        lambda evidence, fault: signs.lost(evidence, fault, ARRIVING),
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
        "The policy does not hear of uses",
        "A page that is found again gets its second chance from this: used(page), in every acquire.",
        lambda evidence, fault: fault.kind == "victim",
    ),
    Named(
        "Waits for more than its page",
        "The bytes are right, but a wait for the newest copy holds the direct queue back until all that was fetched "
        "ahead has come.",
        lambda evidence, fault: fault.kind.startswith("no-overlap"),
    ),
)

RELEASE_IDEAS = (
    *GENERAL,
    Named(
        "A released page is as dirty as before",
        "Dirty ends with the copy home, which evict makes. release says that one user less is there, and no more.",
        lambda evidence, fault: fault.kind == "dropped",
    ),
    Named(
        "Nothing is signalled behind the use",
        "Somebody will have to wait until the direct queue is done with this page, and can wait only for what is "
        "signalled: released, on the direct queue, now.",
        lambda evidence, fault: signs.raised(fault, "EarlyWait"),
        instead_of_hint=True,
    ),
    Named(
        "Noted the first time alone",
        "Each release has a value of its own, and it takes the place of the value that was noted for the frame before.",
        lambda evidence, fault: signs.uses_noted(evidence, fault, ONCE),
    ),
    Named(
        "A use that nobody signals",
        "Each use comes after the signal of the one before, so each release signals anew, with a value of its own.",
        lambda evidence, fault: signs.not_done(evidence, fault) and signs.unsignalled_use(evidence, fault),
    ),
    Named(
        "A wait by the wrong number: pages and frames",
        "last_use is by frame: whoever overwrites the frame looks there. The table says in which frame the page lies.",
        lambda evidence, fault: (
            signs.not_done(evidence, fault)
            and not signs.off_by_one(evidence, "released")
            and bool(signs.waits(evidence, "copy", "released") or signs.waits(evidence, WRITE_BACK, "released"))
        ),
    ),
    Named(
        "Nobody knows when the frame was used last",
        "The value that is signalled has to be noted for the frame: last_use[frame]. As long as it is 0, nobody waits.",
        lambda evidence, fault: (
            signs.not_done(evidence, fault)
            and not (signs.waits(evidence, "copy", "released") or signs.waits(evidence, WRITE_BACK, "released"))
        ),
    ),
    Named(
        "The value from before the signal",
        VALUE_BEFORE,
        lambda evidence, fault: signs.not_done(evidence, fault),
    ),
    Named(
        "A released page stays",
        "release says that the page may go, not that it has to: it stays until its frame is needed, and may be used "
        "again without a copy.",
        lambda evidence, fault: (
            fault.kind in ("stranger", "brought-twice") or (fault.kind == "victim" and fault.expected.endswith("stays"))
        ),
        instead_of_hint=True,
    ),
    Named(
        "Pins are never given back",
        "Each release takes one pin away. As long as they stay, no page may leave, and the pool is full for good.",
        lambda evidence, fault: (
            fault.kind.startswith(("refused", "wrong-answer")) or signs.broke_in(evidence, fault, "evict")
        ),
    ),
    Named(
        "One release ends the uses of others",
        "Whoever acquired the page besides still uses it. One release takes one pin away.",
        lambda evidence, fault: fault.kind == "in-use" or signs.broke_in(evidence, fault, "release"),
    ),
    Named(
        "Waits where nobody has to yet",
        "Whoever overwrites the frame will wait, if anybody ever does. release only signals.",
        lambda evidence, fault: (
            fault.kind == "waits-early" or (fault.kind.startswith("no-overlap") and signs.own_wait(evidence, fault))
        ),
    ),
    Named(
        "Noted for other frames, too",
        "Whoever fills a frame waits for what is noted there. The value of this signal is noted for the frame of the "
        "page that is released, and for no other.",
        lambda evidence, fault: fault.kind.startswith("no-overlap"),
        instead_of_hint=True,
    ),
)

GATE_IDEAS = (
    *GENERAL,
    Named(
        "A page is used before it has come",
        "acquire lets the direct queue wait for ready[page], which prefetch noted behind the copy.",
        signs.copy_not_awaited,
    ),
    Named(
        "A frame is filled while it is still used",
        "release signals and notes last_use[frame]; prefetch lets the copy queue wait for it before it overwrites.",
        signs.reader_not_awaited,
    ),
    Named(
        "A page is saved before it was written",
        "evict lets the write-back queue wait for last_use[frame].",
        signs.writer_not_awaited,
    ),
    Named(
        "A page is fetched before it is home",
        "evict notes returned[page]; prefetch lets the copy queue wait for it.",
        signs.not_home_yet,
    ),
    Named(
        "A frame is filled before it was saved",
        "evict notes emptied[frame]; prefetch lets the copy queue wait for it.",
        signs.not_saved_yet,
    ),
    Named(
        "What was written is dropped",
        "acquire with write=True makes a page dirty, and evict copies it home before its frame is used again.",
        lambda evidence, fault: fault.kind == "dropped",
    ),
    Named(
        "Clean pages are saved",
        "evict copies only what is_dirty, and acquire makes only those dirty that are acquired with write=True.",
        lambda evidence, fault: fault.kind == "saved-clean",
    ),
    Named(
        "On demand",
        "A copy that begins when the page is needed cannot be hidden: prefetch itself starts the copy.",
        lambda evidence, fault: fault.kind == "on-demand",
    ),
    Named(
        "The parts do not agree with each other",
        "The table refuses what it is told: one part says what another has said already, or has to say first.",
        lambda evidence, fault: signs.raised(fault, "PageError"),
    ),
    Named(
        "Nothing is signalled behind a use",
        "release signals released, on the direct queue, and notes the value that it has signalled.",
        lambda evidence, fault: signs.raised(fault, "EarlyWait") and "released" in fault.got,
        instead_of_hint=True,
    ),
    Named(
        "Nothing is signalled behind a copy",
        "prefetch signals arrived, on the copy queue, and notes the value that it has signalled.",
        lambda evidence, fault: signs.raised(fault, "EarlyWait") and "arrived" in fault.got,
        instead_of_hint=True,
    ),
    Named(
        "Nothing is signalled behind a copy home",
        "evict signals saved, on the write-back queue, and notes the value that it has signalled.",
        lambda evidence, fault: signs.raised(fault, "EarlyWait") and "saved" in fault.got,
        instead_of_hint=True,
    ),
    TOO_EAGER,
    *DECLINES,
    Named(
        "No page ever leaves",
        "None may go, as it seems. Either the policy knows of none: prefetch tells it (placed). Or each has users "
        "still: acquire pins a page once, and release takes that pin away.",
        signs.nobody_leaves,
    ),
    Named(
        "Another page leaves than the policy's",
        "Your Clock chooses others than CLOCK would: is it told of everything, placed, used, removed?",
        lambda evidence, fault: fault.kind == "hit-rate",
    ),
    Named(
        "Waits for more than has to be",
        "The bytes are right, but a wait for later work puts in order what could run at the same time.",
        lambda evidence, fault: fault.kind.startswith("no-overlap"),
    ),
)
