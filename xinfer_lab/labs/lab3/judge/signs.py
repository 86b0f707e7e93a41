"""Lab 3: the signs in a run by which its judges recognise a wrong idea: each looks at the evidence and the fault."""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import pairwise

from xinfer_lab.device.records import Signal, Wait
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.views.labels import slot_of_buffer

__all__ = [
    "begins_again_with",
    "by_layer",
    "by_ring_step",
    "copy_queue_signals",
    "copy_signalled_early",
    "counts_layers",
    "never_refilled",
    "not_counted",
    "nothing_signalled",
    "one_slot",
    "race",
    "read_signalled_early",
    "refills_one_late",
    "refused",
    "second_run",
    "serial",
    "step_stays",
    "too_many_at_start",
    "too_much",
    "waits",
    "waits_at_start",
    "waits_for_itself",
    "waits_for_later",
]


def waits(evidence: Evidence, queue: str, fence: str) -> list[int]:
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
    return list({bisect_left(signals, upload.record): upload.layer for upload in uploads}.values())


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


def waits_at_start(evidence: Evidence, fault: Fault) -> bool:
    """A refused wait for a reader, in one of the first N steps, which find empty slots."""
    wait = _reader_wait(evidence, fault)
    return wait is not None and wait[0] < evidence.case.pool


def waits_for_later(evidence: Evidence, fault: Fault) -> bool:
    """A refused wait for a reader later than the slot's last one."""
    wait = _reader_wait(evidence, fault)
    return wait is not None and wait[1] > wait[2]


def nothing_signalled(evidence: Evidence, fault: Fault) -> bool:
    """A refused wait for a reader, while no step was ever signalled as computed."""
    silent = not any(isinstance(r, Signal) and r.fence.startswith("consumed") for r in evidence.stream)
    return _reader_wait(evidence, fault) is not None and silent and bool(evidence.program.computes)


def copy_queue_signals(evidence: Evidence, fault: Fault) -> bool:
    """The copy queue says that a step has been computed."""
    signals = (r for r in evidence.stream if isinstance(r, Signal) and r.fence.startswith("consumed"))
    return any(signal.queue == "copy" for signal in signals)


def step_stays(evidence: Evidence, fault: Fault) -> bool:
    """The same fence value again after the first step, and nothing uploaded beyond the first N layers."""
    again = refused("the next value must be", evidence, fault) and len(evidence.program.computes) > 1
    return again and len(_uploads(evidence)) == evidence.case.pool


def refills_one_late(evidence: Evidence, fault: Fault) -> bool:
    """Every refill goes out one step later than it could."""
    computes, pool = evidence.program.computes, evidence.case.pool
    return fault.kind == "late-upload" and all(
        ahead.uploads and before.record < min(ahead.uploads) < after.record
        for (before, after), ahead in zip(pairwise(computes[1:]), computes[pool:], strict=False)
    )


def begins_again_with(layer: int, evidence: Evidence, fault: Fault) -> bool:
    """Whether ``layer`` is uploaded once more as soon as the slots have been filled."""
    uploads, pool = _uploads(evidence), evidence.case.pool
    return uploads[: pool + 1] == [*range(pool), layer]


def not_counted(evidence: Evidence, fault: Fault) -> bool:
    """Layer 0 is uploaded again and again, or once more after the first N."""
    uploads = _uploads(evidence)
    endless = fault.kind == "raised:AnswerTimeout" and len(uploads) > evidence.case.pool and set(uploads) == {0}
    return endless or begins_again_with(0, evidence, fault)


def by_ring_step(evidence: Evidence, fault: Fault) -> bool:
    """The copy queue waits for the reader that would be right for ring.step instead of for the given step."""
    # The piece calls the part with ring.step two steps back, but not below 0.
    values = waits(evidence, "copy", "consumed")
    behind = values == [max(0, value - 1) for value in range(len(values))]
    return race("write-after-read", evidence, fault) and len(values) > 1 and behind


def race(kind: str, evidence: Evidence, fault: Fault) -> bool:
    """The fault is a hazard of that kind."""
    return fault.kind == f"hazard:{kind}"


def waits_for_itself(evidence: Evidence, fault: Fault) -> bool:
    """A queue waits for a fence of its own."""
    return fault.kind.startswith("hazard") and any(hazard.kind == "self-wait" for hazard in evidence.findings.hazards)


def counts_layers(values: list[int], evidence: Evidence) -> bool:
    """More values than layers and none beyond their number: layers are counted where steps are meant."""
    return len(values) > evidence.case.layers >= max(values) and len(set(values)) > 1


def _signals_early(fence: str, before: int | None, evidence: Evidence) -> bool:
    """Whether ``fence`` is signalled before record ``before``, the first of what it is to tell of."""
    early = list(evidence.stream)[: before or 0]
    return any(isinstance(record, Signal) and record.fence.startswith(fence) for record in early)


def copy_signalled_early(evidence: Evidence, fault: Fault) -> bool:
    """A read races a copy whose fence was signalled before anything was copied."""
    first = min((upload.record for upload in evidence.program.uploads), default=None)
    return race("read-after-write", evidence, fault) and _signals_early("copied", first, evidence)


def read_signalled_early(evidence: Evidence, fault: Fault) -> bool:
    """A copy races a read whose fence was signalled before anything was computed."""
    first = min((compute.record for compute in evidence.program.computes), default=None)
    return race("write-after-read", evidence, fault) and _signals_early("consumed", first, evidence)


def refused(words: str, evidence: Evidence, fault: Fault) -> bool:
    """A fence refused the program, in these words."""
    return fault.kind == "raised:FenceError" and words in fault.got


def too_many_at_start(evidence: Evidence, fault: Fault) -> bool:
    """Before anything is computed the copy queue waits for a reader, all slots being filled."""
    early = fault.kind == "raised:EarlyWait" and fault.got.startswith("the copy queue waits")
    return early and not evidence.program.computes and len(_filled(evidence)) >= evidence.case.pool


def by_layer(evidence: Evidence, fault: Fault) -> bool:
    """Slots follow the number of the layer, where L mod N is not 0."""
    filled, pool, layers = _filled(evidence), evidence.case.pool, evidence.case.layers
    wrapped = len(filled) > layers and layers % pool != 0
    return fault.kind == "wrong-layer" and wrapped and all(slot == layer % pool for layer, slot in filled)


def never_refilled(evidence: Evidence, fault: Fault) -> bool:
    """No more uploads than there are slots."""
    return fault.kind in ("wrong-layer", "not-uploaded") and 0 < len(_filled(evidence)) <= evidence.case.pool


def one_slot(evidence: Evidence, fault: Fault) -> bool:
    """Several uploads, all into one slot."""
    filled = _filled(evidence)
    return len({slot for _, slot in filled}) == 1 < len(filled) and not fault.kind.startswith("raised")


def second_run(evidence: Evidence, fault: Fault) -> bool:
    """The first wrong step is the first of the second run."""
    wrong = next((c for c in evidence.program.computes if c.layers != (c.step % evidence.case.layers,)), None)
    start = (evidence.case.steps - 1) * evidence.case.layers
    return fault.kind in ("wrong-layer", "not-uploaded") and wrong is not None and wrong.step == start


def serial(evidence: Evidence, fault: Fault) -> bool:
    """Each upload waits, in the order that the fences leave, for the computing of the step before it."""
    computes = evidence.program.computes
    return fault.kind in ("late-upload", "not-filled", "no-overlap") and all(
        later.uploads and evidence.ordering.before(earlier.record, min(later.uploads))
        for earlier, later in pairwise(computes)
    )


def too_much(evidence: Evidence, fault: Fault) -> bool:
    """Overlap is lost to a wait between queues."""
    return fault.kind == "no-overlap" and any(isinstance(evidence.stream[i], Wait) for i in fault.records)
