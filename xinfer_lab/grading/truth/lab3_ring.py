"""Lab 3: the judges of the parts that drive the queues, and the wrong ideas behind faults in them."""

from __future__ import annotations

import re
from itertools import pairwise

from xinfer_lab.device.records import Signal, Wait
from xinfer_lab.grading.programs import rules
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.grading.programs.verify import Named, ProgramJudge
from xinfer_lab.views.labels import slot_of_buffer

__all__ = ["ENSURE", "GATE", "PREFETCH", "PREFETCH_AHEAD", "RELEASE", "WAIT_UNTIL_READ"]


def _waits(evidence: Evidence, queue: str, fence: str) -> list[int]:
    """The values that ``queue`` waits for, of the fences whose names begin with ``fence``."""
    records = evidence.stream
    return [r.value for r in records if isinstance(r, Wait) and r.queue == queue and r.fence.startswith(fence)]


def _filled(evidence: Evidence) -> list[tuple[int, int | None]]:
    """Layer and slot of each upload, in order; the copies of one upload count once."""
    copies = [(upload.layer, slot_of_buffer(upload.dst.buffer)) for upload in evidence.program.uploads]
    return [copy for copy, before in zip(copies, [None, *copies], strict=False) if copy != before]


def _uploads(evidence: Evidence, before: int | None = None) -> list[int]:
    """The layer of each upload (before record ``before``) in order: copies up to one signal of their fence are one
    upload."""
    signals = [i for i, r in enumerate(evidence.stream) if isinstance(r, Signal) and r.fence.startswith("copied")]
    uploads = [upload for upload in evidence.program.uploads if before is None or upload.record < before]
    return list({sum(i < upload.record for i in signals): upload.layer for upload in uploads}.values())


def _reader_wait(evidence: Evidence, fault: Fault) -> tuple[int, int, int] | None:
    """Of a refused wait for ``consumed``: the step to upload, the value that was waited for, and the right one."""
    early = re.match(r"the copy queue waits for 'consumed[^']*' >= (\d+), but the highest .* is (\d+)\.", fault.got)
    below = re.match(r"fence 'consumed[^']*' starts at 0: there is nothing to wait for at (-\d+)", fault.got)
    found = early or below
    if found is None or not fault.kind.startswith("raised:"):
        return None
    # The model leaves its pass by the same methods, so the stream may go on behind the wait that was refused.
    further = (
        i
        for i, record in enumerate(evidence.stream)
        if early and isinstance(record, Signal) and record.fence.startswith("consumed") and record.value > int(early[2])
    )
    step = len(_uploads(evidence, next(further, None)))
    return step, int(found[1]), step - evidence.case.pool + 1


def _waits_at_start(evidence: Evidence, fault: Fault) -> bool:
    wait = _reader_wait(evidence, fault)
    return wait is not None and wait[0] < evidence.case.pool


def _waits_for_later(evidence: Evidence, fault: Fault) -> bool:
    wait = _reader_wait(evidence, fault)
    return wait is not None and wait[1] > wait[2]


def _nothing_signalled(evidence: Evidence, fault: Fault) -> bool:
    silent = not any(isinstance(r, Signal) and r.fence.startswith("consumed") for r in evidence.stream)
    return _reader_wait(evidence, fault) is not None and silent and bool(evidence.program.computes)


def _copy_queue_signals(evidence: Evidence, fault: Fault) -> bool:
    signals = (r for r in evidence.stream if isinstance(r, Signal) and r.fence.startswith("consumed"))
    return any(signal.queue == "copy" for signal in signals)


def _step_stays(evidence: Evidence, fault: Fault) -> bool:
    again = _refused("the next value must be", evidence, fault) and len(evidence.program.computes) > 1
    return again and len(_uploads(evidence)) == evidence.case.pool


def _refills_one_late(evidence: Evidence, fault: Fault) -> bool:
    computes, pool = evidence.program.computes, evidence.case.pool
    return fault.kind == "late-upload" and all(
        ahead.uploads and before.record < min(ahead.uploads) < after.record
        for (before, after), ahead in zip(pairwise(computes[1:]), computes[pool:], strict=False)
    )


def _begins_again_with(layer: int, evidence: Evidence, fault: Fault) -> bool:
    """Whether ``layer`` is uploaded once more as soon as the slots have been filled."""
    uploads, pool = _uploads(evidence), evidence.case.pool
    return uploads[: pool + 1] == [*range(pool), layer]


def _not_counted(evidence: Evidence, fault: Fault) -> bool:
    uploads = _uploads(evidence)
    endless = fault.kind == "raised:AnswerTimeout" and len(uploads) > evidence.case.pool and set(uploads) == {0}
    return endless or _begins_again_with(0, evidence, fault)


def _by_ring_step(evidence: Evidence, fault: Fault) -> bool:
    # The piece calls the part with ring.step two steps back, but not below 0.
    waits = _waits(evidence, "copy", "consumed")
    behind = waits == [max(0, value - 1) for value in range(len(waits))]
    return _race("write-after-read", evidence, fault) and len(waits) > 1 and behind


def _race(kind: str, evidence: Evidence, fault: Fault) -> bool:
    return fault.kind == f"hazard:{kind}"


def _waits_for_itself(evidence: Evidence, fault: Fault) -> bool:
    return fault.kind.startswith("hazard") and any(hazard.kind == "self-wait" for hazard in evidence.findings.hazards)


def _counts_layers(values: list[int], evidence: Evidence) -> bool:
    return len(values) > evidence.case.layers >= max(values) and len(set(values)) > 1


def _signals_early(fence: str, before: int | None, evidence: Evidence) -> bool:
    """Whether ``fence`` is signalled before record ``before``, the first of what it is to tell of."""
    early = list(evidence.stream)[: before or 0]
    return any(isinstance(record, Signal) and record.fence.startswith(fence) for record in early)


def _copy_signalled_early(evidence: Evidence, fault: Fault) -> bool:
    first = min((upload.record for upload in evidence.program.uploads), default=None)
    return _race("read-after-write", evidence, fault) and _signals_early("copied", first, evidence)


def _read_signalled_early(evidence: Evidence, fault: Fault) -> bool:
    first = min((compute.record for compute in evidence.program.computes), default=None)
    return _race("write-after-read", evidence, fault) and _signals_early("consumed", first, evidence)


def _refused(words: str, evidence: Evidence, fault: Fault) -> bool:
    return fault.kind == "raised:FenceError" and words in fault.got


def _too_many_at_start(evidence: Evidence, fault: Fault) -> bool:
    early = fault.kind == "raised:EarlyWait" and fault.got.startswith("the copy queue waits")
    return early and not evidence.program.computes and len(_filled(evidence)) >= evidence.case.pool


def _by_layer(evidence: Evidence, fault: Fault) -> bool:
    filled, pool, layers = _filled(evidence), evidence.case.pool, evidence.case.layers
    wrapped = len(filled) > layers and layers % pool != 0
    return fault.kind == "wrong-layer" and wrapped and all(slot == layer % pool for layer, slot in filled)


def _never_refilled(evidence: Evidence, fault: Fault) -> bool:
    return fault.kind in ("wrong-layer", "not-uploaded") and 0 < len(_filled(evidence)) <= evidence.case.pool


def _one_slot(evidence: Evidence, fault: Fault) -> bool:
    filled = _filled(evidence)
    return len({slot for _, slot in filled}) == 1 < len(filled) and not fault.kind.startswith("raised")


def _second_run(evidence: Evidence, fault: Fault) -> bool:
    wrong = next((c for c in evidence.program.computes if c.layers != (c.step % evidence.case.layers,)), None)
    start = (evidence.case.steps - 1) * evidence.case.layers
    return fault.kind in ("wrong-layer", "not-uploaded") and wrong is not None and wrong.step == start


def _serial(evidence: Evidence, fault: Fault) -> bool:
    computes = evidence.program.computes
    return fault.kind in ("late-upload", "not-filled", "no-overlap") and all(
        later.uploads and evidence.ordering.before(earlier.record, min(later.uploads))
        for earlier, later in pairwise(computes)
    )


def _too_much(evidence: Evidence, fault: Fault) -> bool:
    return fault.kind == "no-overlap" and any(isinstance(evidence.stream[i], Wait) for i in fault.records)


MISCONCEPTIONS = (
    Named(
        "The wrong queue signals",
        "A queue's signal says what that queue has done. The direct queue computes, so it says that a step has been "
        "computed.",
        _copy_queue_signals,
    ),
    Named(
        "The wrong queue waits",
        "A wait holds back the queue that it is given to. The one that would run too far has to wait: the direct "
        "queue for a copy, "
        "the copy queue for a reader. A queue that waits for its own signal waits for nothing.",
        _waits_for_itself,
    ),
    Named(
        "More than N layers at the start",
        "N slots hold N layers. The upload for step s + N has to wait for the reader of step s, and nobody was "
        "asked to signal that yet.",
        _too_many_at_start,
    ),
    Named(
        "The first N steps have nothing to wait for",
        "Steps 0 to N - 1 find empty slots; N is len(ring.slots). Wait only from step N on.",
        _waits_at_start,
        instead_of_hint=True,
    ),
    Named(
        "Waits for a later step than the slot's last reader",
        "Before step s is uploaded, step s - N must have been computed; then s - N + 1 steps are done, and consumed is "
        "at that value.",
        _waits_for_later,
        instead_of_hint=True,
    ),
    Named(
        "Nothing is signalled before the refill",
        "release signals nothing, or only after ring.prefetch(). The direct queue signals ring.consumed first; the "
        "refill's wait names that value.",
        _nothing_signalled,
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
        _step_stays,
        instead_of_hint=True,
    ),
    Named(
        "A fence value is used twice",
        "Values only grow, over all passes: a wait could not tell the second 1 from the first. Number by the "
        "running step.",
        lambda evidence, fault: _refused("the next value must be", evidence, fault),
    ),
    Named(
        "Step 0 signals 0",
        "A fence starts at 0, so reaching 0 says nothing. Value v means that v steps are done: step 0 signals 1.",
        lambda evidence, fault: _refused("starts at 0", evidence, fault),
    ),
    Named(
        "The wrong queue signals",
        "A fence belongs to one queue. The queue that did the work says that it is done.",
        lambda evidence, fault: _refused("belongs to", evidence, fault),
    ),
    Named(
        "More slots in place of refilled ones",
        "The plan has room for N slots. A model that fits needs no streaming; one that does not has to take turns.",
        lambda evidence, fault: fault.kind in ("raised:OutOfDeviceMemory", "over-budget"),
    ),
    Named(
        "Only one slot is used",
        "With one slot nothing can be copied while a layer is computed: the only slot is being read.",
        _one_slot,
    ),
    Named(
        "The slots are never refilled",
        "N slots hold N layers. Each time a layer has been computed, the layer N steps ahead goes where it was.",
        _never_refilled,
    ),
    Named(
        "Only the first run is uploaded",
        "begin may be called again. What has to be uploaded follows from the counters, not from a loop over slots.",
        _second_run,
    ),
    Named(
        "Slot by layer number",
        "slot = layer % N breaks where one pass ends and the next begins, unless N divides L: the last layers "
        "and the first "
        "ones of the next token then meet in one slot. Number the uploads by the running step.",
        _by_layer,
    ),
    Named(
        "The signal comes before the read",
        "A signal says: everything submitted to this queue so far is done. The layer's computing has to be "
        "submitted before it.",
        _read_signalled_early,
    ),
    Named(
        "The signal comes before the copy",
        "A signal says: everything submitted to this queue so far is done. The copy has to be submitted before it.",
        _copy_signalled_early,
    ),
    Named(
        "Waits for the layer, not for the slot",
        "In the second pass the fence is past every layer number already, so such a wait waits for nothing. The "
        "slot knows the "
        "value of its own last upload: slot.ready.",
        lambda evidence, fault: (
            _race("read-after-write", evidence, fault)
            and _counts_layers(_waits(evidence, "direct", "copied"), evidence)
        ),
    ),
    Named(
        "Counts layers, not steps",
        "In the second pass the fence is past every layer number already, so such a wait waits for nothing. "
        "Count steps over "
        "all passes.",
        lambda evidence, fault: (
            _race("write-after-read", evidence, fault)
            and _counts_layers(_waits(evidence, "copy", "consumed"), evidence)
        ),
    ),
    Named(
        "Nobody waits for the copy",
        "Submitted is not arrived. The direct queue starts a kernel as soon as it can, whatever the copy queue is at.",
        lambda evidence, fault: _race("read-after-write", evidence, fault) and not _waits(evidence, "direct", "copied"),
    ),
    Named(
        "Nobody waits for the reader",
        "release is called when the computing has been submitted, not when it is over. The copy queue has to "
        "wait before it overwrites.",
        lambda evidence, fault: _race("write-after-read", evidence, fault) and not _waits(evidence, "copy", "consumed"),
    ),
    Named(
        "The wait is not for this slot's copy",
        "The value that is waited for belongs to an earlier upload. Wait for the value of what was uploaded last "
        "into this slot.",
        lambda evidence, fault: _race("read-after-write", evidence, fault),
    ),
    Named(
        "The wait is not for this slot's reader",
        "The value that is waited for belongs to an earlier step, or the wait comes after the copy. Before step "
        "s is uploaded, step "
        "s - N must have been computed.",
        lambda evidence, fault: _race("write-after-read", evidence, fault),
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
        _refills_one_late,
    ),
    Named(
        "Serial",
        "Each upload is submitted only when the layer before it has been handed in, so copying and computing "
        "take turns. Fill all "
        "slots at the start, and refill each as soon as its layer has been computed.",
        _serial,
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
        _too_much,
    ),
)

NOT_COUNTED = Named(
    "ring.uploaded does not go on",
    "After each upload ring.uploaded is one more; otherwise the same step is uploaded again.",
    _not_counted,
)
FROM_STEP = Named(
    "Uploads begin with ring.step",
    "Begin with ring.uploaded: the steps from ring.step up to there are uploaded already.",
    lambda evidence, fault: _begins_again_with(1, evidence, fault),
)
BY_RING_STEP = Named(
    "Goes by ring.step",
    "The reader is step s - N, reckoned from the `step` that is given. ring.step has that value only while release "
    "refills; the check calls with another one.",
    _by_ring_step,
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

_RIGHT = (
    rules.given_inputs_only,
    rules.right_queues,
    rules.right_layers,
    rules.no_hazard,
    rules.each_step_uploads_once,
)
_AHEAD = (rules.host_never_blocks, rules.slots_filled_first, rules.uploads_ahead, rules.uploads_overlap)


def _judge(passed: str, *own: Named, ahead: bool = True) -> ProgramJudge:
    """A judge that looks for ``own`` misconceptions first: those that can be told for sure where one part is asked
    for."""
    asked = (*_RIGHT, *(_AHEAD if ahead else ()), rules.parity)
    return ProgramJudge(asked, passed, (*own, *MISCONCEPTIONS), BLAME)


ENSURE = _judge("The direct queue waits for its slot's copy, and for no more than that.")
WAIT_UNTIL_READ = _judge("No slot is overwritten before the direct queue is done with it.", BY_RING_STEP)
PREFETCH = _judge("Every step finds its own layer in its slot, uploaded once.", NOT_COUNTED, FROM_STEP, ahead=False)
PREFETCH_AHEAD = _judge(
    "Uploads run N steps ahead, beside the computing; the host never blocks.", NOT_COUNTED, FROM_STEP
)
RELEASE = _judge("The slot is given free when it has been read, and refilled at once.")
GATE = _judge("streaming vs resident max abs diff = 0, no hazard, within budget, copies beside computing.")
