"""Lab 3: the judges of the parts that drive the queues, and the wrong ideas behind faults in them."""

from __future__ import annotations

from collections.abc import Mapping

from xinfer_lab.device.records import Allocate
from xinfer_lab.grading.programs import run_rules as rules
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.grading.programs.verify_program import Named, ProgramJudge
from xinfer_lab.labs.lab3.judge import signs

__all__ = ["ENSURE", "GATE", "PREFETCH", "PREFETCH_AHEAD", "RELEASE", "WAIT_UNTIL_READ"]

MISCONCEPTIONS = (
    Named(
        "The wrong queue signals",
        "A queue's signal says what that queue has done. The direct queue computes, so it says that a step has been "
        "computed.",
        signs.copy_queue_signals,
    ),
    Named(
        "The wrong queue waits",
        "A wait holds back the queue that it is given to. The one that would run too far has to wait: the direct "
        "queue for a copy, "
        "the copy queue for a reader. A queue that waits for its own signal waits for nothing.",
        signs.waits_for_itself,
    ),
    Named(
        "More than N layers at the start",
        "N slots hold N layers. The upload for step s + N has to wait for the reader of step s, and nobody was "
        "asked to signal that yet.",
        signs.too_many_at_start,
    ),
    Named(
        "The first N steps have nothing to wait for",
        "Steps 0 to N - 1 find empty slots; N is len(ring.slots). Wait only from step N on.",
        signs.waits_at_start,
        instead_of_hint=True,
    ),
    Named(
        "Waits for a later step than the slot's last reader",
        "Before step s is uploaded, step s - N must have been computed; then s - N + 1 steps are done, and consumed is "
        "at that value.",
        signs.waits_for_later,
        instead_of_hint=True,
    ),
    Named(
        "Nothing is signalled before the refill",
        "release signals nothing, or only after ring.prefetch(). The direct queue signals ring.consumed first; the "
        "refill's wait names that value.",
        signs.nothing_signalled,
        instead_of_hint=True,
    ),
    Named(
        "Wait before signal",
        "A wait names a value that was submitted before it. The signal comes first in the program, then what "
        "waits for it.",
        lambda evidence, fault: fault.kind == "raised:EarlyWait",
    ),
    Named(
        "ring.step does not go on",
        "Each release ends a step, so it adds 1 to ring.step. Without that the next step signals the same value again, "
        "and prefetch finds nothing to upload.",
        signs.step_stays,
        instead_of_hint=True,
    ),
    Named(
        "A fence value is used twice",
        "Values only grow, over all passes: a wait could not tell the second 1 from the first. Number by the "
        "running step.",
        lambda evidence, fault: signs.refused("the next value must be", evidence, fault),
    ),
    Named(
        "Step 0 signals 0",
        "A fence starts at 0, so reaching 0 says nothing. Value v means that v steps are done: step 0 signals 1.",
        lambda evidence, fault: signs.refused("starts at 0", evidence, fault),
    ),
    Named(
        "The wrong queue signals",
        "A fence belongs to one queue. The queue that did the work says that it is done.",
        lambda evidence, fault: signs.refused("belongs to", evidence, fault),
    ),
    Named(
        "More slots in place of refilled ones",
        "The plan has room for N slots. A model that fits needs no streaming; one that does not has to take turns.",
        lambda evidence, fault: fault.kind in ("raised:OutOfDeviceMemory", "over-budget"),
    ),
    Named(
        "Only one slot is used",
        "With one slot nothing can be copied while a layer is computed: the only slot is being read.",
        signs.one_slot,
    ),
    Named(
        "The slots are never refilled",
        "N slots hold N layers. Each time a layer has been computed, the layer N steps ahead goes where it was.",
        signs.never_refilled,
    ),
    Named(
        "Only the first run is uploaded",
        "begin may be called again. What has to be uploaded follows from the counters, not from a loop over slots.",
        signs.second_run,
    ),
    Named(
        "Slot by layer number",
        "slot = layer % N breaks where one pass ends and the next begins, unless N divides L: the last layers "
        "and the first "
        "ones of the next token then meet in one slot. Number the uploads by the running step.",
        signs.by_layer,
    ),
    Named(
        "The signal comes before the read",
        "A signal says: everything submitted to this queue so far is done. The layer's computing has to be "
        "submitted before it.",
        signs.read_signalled_early,
    ),
    Named(
        "The signal comes before the copy",
        "A signal says: everything submitted to this queue so far is done. The copy has to be submitted before it.",
        signs.copy_signalled_early,
    ),
    Named(
        "Waits for the layer, not for the slot",
        "In the second pass the fence is past every layer number already, so such a wait waits for nothing. The "
        "slot knows the "
        "value of its own last upload: slot.ready.",
        lambda evidence, fault: (
            signs.race("read-after-write", evidence, fault)
            and signs.counts_layers(signs.waits(evidence, "direct", "copied"), evidence)
        ),
    ),
    Named(
        "Counts layers, not steps",
        "In the second pass the fence is past every layer number already, so such a wait waits for nothing. "
        "Count steps over "
        "all passes.",
        lambda evidence, fault: (
            signs.race("write-after-read", evidence, fault)
            and signs.counts_layers(signs.waits(evidence, "copy", "consumed"), evidence)
        ),
    ),
    Named(
        "Nobody waits for the copy",
        "Submitted is not arrived. The direct queue starts a kernel as soon as it can, whatever the copy queue is at.",
        lambda evidence, fault: (
            signs.race("read-after-write", evidence, fault) and not signs.waits(evidence, "direct", "copied")
        ),
    ),
    Named(
        "Nobody waits for the reader",
        "release is called when the computing has been submitted, not when it is over. The copy queue has to "
        "wait before it overwrites.",
        lambda evidence, fault: (
            signs.race("write-after-read", evidence, fault) and not signs.waits(evidence, "copy", "consumed")
        ),
    ),
    Named(
        "The wait is not for this slot's copy",
        "The value that is waited for belongs to an earlier upload. Wait for the value of what was uploaded last "
        "into this slot.",
        lambda evidence, fault: signs.race("read-after-write", evidence, fault),
    ),
    Named(
        "The wait is not for this slot's reader",
        "The value that is waited for belongs to an earlier step, or the wait comes after the copy. Before step "
        "s is uploaded, step "
        "s - N must have been computed.",
        lambda evidence, fault: signs.race("write-after-read", evidence, fault),
    ),
    Named(
        "Uploaded a second time",
        "The upload for this step is on its way already: it was submitted N steps ago. What is left to do is to "
        "wait for it.",
        lambda evidence, fault: fault.kind == "uploaded-twice",
    ),
    Named(
        "ring.step has to go on before prefetch",
        "prefetch goes by ring.step: called before the step is counted, it finds the slot still in use and refills it "
        "one step late.",
        signs.refills_one_late,
    ),
    Named(
        "Serial",
        "Each upload is submitted only when the layer before it has been handed in, so copying and computing "
        "take turns. Fill all "
        "slots at the start, and refill each as soon as its layer has been computed.",
        signs.serial,
    ),
    Named(
        "Not far enough ahead",
        "With N slots, N uploads can be on their way: as soon as step s has been handed in, the upload for step "
        "s + N goes out.",
        lambda evidence, fault: fault.kind in ("late-upload", "not-filled"),
    ),
    Named(
        "The host waits in place of a queue",
        "The numbers are right, but while the host blocks it submits nothing.",
        lambda evidence, fault: fault.kind == "host-blocks",
    ),
    Named(
        "Waits for more than the slot",
        "The numbers are right, but a wait for later work puts in order what could run at the same time.",
        signs.too_much,
    ),
)

NOT_COUNTED = Named(
    "ring.uploaded does not go on",
    "After each upload ring.uploaded is one more; otherwise the same step is uploaded again.",
    signs.not_counted,
)
FROM_STEP = Named(
    "Uploads begin with ring.step",
    "Begin with ring.uploaded: the steps from ring.step up to there are uploaded already.",
    lambda evidence, fault: signs.begins_again_with(1, evidence, fault),
)
BY_RING_STEP = Named(
    "Goes by ring.step",
    "The reader is step s - N, reckoned from the `step` that is given. ring.step has that value only while release "
    "refills; the check calls with another one.",
    signs.by_ring_step,
)

BLAME = {
    "hazard:read-after-write": "ensure",
    "hazard:write-after-read": "wait_until_read",
    "hazard:self-wait": "wait_until_read",
    "wrong-layer": "slot_of",
    "not-": "prefetch",
    "late-upload": "prefetch",
    "no-overlap": "ensure",
    "uploaded-twice": "prefetch",
    "raised:EarlyWait": "wait_until_read",
    "raised:FenceError": "release",
}


def asks_for_no_memory(evidence: Evidence) -> Fault | None:
    """Once the ring has its slots, nobody asks for more memory, on the device or pinned."""
    last = f"slot[{evidence.case.pool - 1}]."
    made = [i for i, r in enumerate(evidence.stream) if isinstance(r, Allocate) and r.buffer.startswith(last)]
    for index, record in enumerate(evidence.stream):
        if made and index > max(made[:2]) and isinstance(record, Allocate):
            return Fault(
                "allocates",
                "More memory is asked for while the ring is at work.",
                expected="the ring's slots and what was pinned before, and nothing else",
                got=f"{record.size} bytes, {record.buffer!r}",
                records=(index,),
                hint="The ring has all the memory that there is a plan for.",
                show=False,
            )
    return None


_RIGHT = (
    rules.given_inputs_only,
    rules.two_queues_only,
    rules.right_queues,
    rules.right_layers,
    rules.no_hazard,
    rules.each_step_uploads_once,
)
_AHEAD = (rules.host_never_blocks, rules.slots_filled_first, rules.uploads_ahead, rules.uploads_overlap)
_SIGNALS = (rules.signals_each_step, asks_for_no_memory)

_EVERYWHERE = {"other-queue": "two_queues", "allocates": "no_memory"}
_HOST = {"host-blocks": "host", "host-sleeps": "host"}


def _judge(passed: str, named: Mapping[str, str], *own: Named, ahead: bool = True) -> ProgramJudge:
    """A judge that looks for ``own`` misconceptions first: those that can be told for sure where one part is asked
    for."""
    asked = (*_RIGHT, *(_AHEAD if ahead else ()), *_SIGNALS, rules.parity)
    every = {**named, **_EVERYWHERE} if named else {}
    return ProgramJudge(asked, passed, (*own, *MISCONCEPTIONS), BLAME, named=every)


ENSURE = _judge(
    "The direct queue waits for its slot's copy, and for no more than that.",
    {
        "hazard:read-after-write": "arrived",
        "hazard:self-wait": "direct_queue",
        "no-overlap": "no_more",
        "raised:TypeError": "returns",
        "raised:ValueError": "returns",
        "uploaded-twice": "uploads_nothing",
        **_HOST,
    },
)
WAIT_UNTIL_READ = _judge(
    "No slot is overwritten before the direct queue is done with it.",
    {
        "hazard:write-after-read": "read",
        "hazard:self-wait": "copy_queue",
        "raised:EarlyWait": "no_more",
        "raised:FenceError": "first_n",
        **_HOST,
    },
    BY_RING_STEP,
)
PREFETCH = _judge(
    "Every step finds its own layer in its slot, uploaded once.",
    {
        "wrong-layer": "layer_and_slot",
        "not-uploaded": "each_once",
        "uploaded-twice": "each_once",
        "raised:EarlyWait": "as_far",
        "hazard:write-after-read": "waits_first",
        "raised:AnswerTimeout": "counts",
    },
    NOT_COUNTED,
    FROM_STEP,
    ahead=False,
)
PREFETCH_AHEAD = _judge(
    "Uploads run N steps ahead, beside the computing; the host never blocks.",
    {
        "late-upload": "ahead",
        "not-filled": "ahead",
        "no-overlap": "ahead",
        "raised:OutOfDeviceMemory": "n_slots",
        "over-budget": "n_slots",
        **_HOST,
    },
    NOT_COUNTED,
    FROM_STEP,
)
RELEASE = _judge(
    "The slot is given free when it has been read, and refilled at once.",
    {
        "never-signalled": "signals",
        "promised-too-early": "signals",
        "hazard:wrong-signaller": "direct_queue",
        "raised:FenceError": "goes_on",
        "raised:EarlyWait": "after_the_signal",
        "late-upload": "refills",
        "wrong-layer": "refills",
        **_HOST,
    },
)
GATE = _judge("streaming vs resident max abs diff = 0, no hazard, within budget, copies beside computing.", {})
