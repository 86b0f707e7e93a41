"""Lab 4: rules of its own: claims that are true when they are made, no barrier too many, no upload past the end."""

from __future__ import annotations

from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.records import Allocate, AssumeCommon, Copy, Dispatch, Record, Signal, Transition
from xinfer_lab.grading.programs import run_rules as rules
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.labs.lab4.cases import LONG
from xinfer_lab.views.labels import slot_of_buffer

__all__ = [
    "begun_once",
    "by_layer_number",
    "never_refilled",
    "no_claim_within_a_call",
    "no_needless_barrier",
    "nothing_is_pinned",
    "nothing_past_the_end",
    "parity",
    "running",
    "steps_are_counted",
]


def running(evidence: Evidence) -> list[int]:
    """Where the passes' records begin and end: what is loaded and freed around them does not count."""
    computes = evidence.program.computes
    last = computes[-1].record if computes else len(evidence.stream)
    return list(range(evidence.first_pass, last))


def by_layer_number(evidence: Evidence, fault: Fault) -> bool:
    """Whether every upload went to the slot layer mod the number of slots, or every step read there, and that makes a
    difference."""
    layers = evidence.case.layers
    filled = [(upload.layer, slot_of_buffer(upload.dst.buffer)) for upload in evidence.program.uploads]
    read = [
        (compute.step % layers, slot_of_buffer(view.buffer))
        for compute in evidence.program.computes
        for name, view in getattr(evidence.stream[compute.record], "operands", {}).items()
        if name.startswith(("self_attn.", "mlp."))
    ]
    slots = len({slot for _, slot in filled})
    return (
        fault.kind == "wrong-layer"
        and len(filled) > 2 * evidence.case.pool
        and layers % slots != 0
        and any(all(slot == layer % slots for layer, slot in found) for found in (filled, read))
    )


def begun_once(evidence: Evidence, fault: Fault) -> bool:
    """Whether passes are announced again, and nothing is uploaded any more from then on."""
    later = rules.announced(evidence)[1:]
    if fault.kind not in ("wrong-layer", "not-uploaded", "not-filled") or not later:
        return False
    second = _end_of_pass(evidence, later[0].start // evidence.case.layers - 1)
    return not any(upload.record > second for upload in evidence.program.uploads)


def never_refilled(evidence: Evidence, fault: Fault) -> bool:
    """Whether nothing was uploaded but the first N layers."""
    slots = {upload.dst.buffer for upload in evidence.program.uploads}
    return fault.kind == "wrong-layer" and len(evidence.program.uploads) <= len(slots)


def no_claim_within_a_call(evidence: Evidence) -> Fault | None:
    """No buffer is claimed to be in COMMON between two commands of one call that use it or have a barrier for it."""
    records = list(evidence.stream)
    for index, record in enumerate(records):
        if not isinstance(record, AssumeCommon):
            continue
        before = next((r for r in reversed(records[:index]) if not isinstance(r, AssumeCommon)), None)
        after = next((r for r in records[index + 1 :] if not isinstance(r, AssumeCommon)), None)
        call = getattr(before, "call", None)
        if call is None or call != getattr(after, "call", None):
            continue
        earlier = [i for i, r in enumerate(records[:index]) if getattr(r, "call", None) == call and _touches(r, record)]
        if earlier:
            return Fault(
                "claim-in-call",
                f"{record.buffer} is claimed to be in COMMON within a call that has used it.",
                expected="a claim that is true when it is made: before the call, or after it",
                got="a claim between two commands of one call; there a buffer stays in the state of its last use",
                records=(index, earlier[-1]),
                hint="Move the claim in front of the list, or take it away.",
                show=False,
            )
    return None


def _touches(record: Record, claim: AssumeCommon) -> bool:
    match record:
        case Transition():
            return record.buffer == claim.buffer
        case Copy():
            return claim.buffer in (record.dst.buffer, record.src.buffer)
        case Dispatch():
            return any(view.buffer == claim.buffer for view in record.operands.values())
    return False


def no_needless_barrier(evidence: Evidence) -> Fault | None:
    """No barrier for a slot's buffer is recorded while the passes run: each call finds it in COMMON and promotes it."""
    for index in running(evidence):
        record = evidence.stream[index]
        if isinstance(record, Transition) and record.buffer.startswith("slot["):
            return Fault(
                "needless-barrier",
                f"A barrier for {record.buffer} is recorded that nobody needs.",
                expected="no barrier: in each call the buffer is in COMMON, and its first use promotes it",
                got=f"a barrier from {record.before} to {record.after}",
                records=(index,),
                hint="Claim COMMON after the wait, and leave the rest to the list that computes.",
                show=False,
            )
    return None


def nothing_past_the_end(evidence: Evidence) -> Fault | None:
    """Each upload belongs to a step that was announced before it."""
    for steps in rules.announced(evidence)[1:]:
        early = [
            record
            for compute in evidence.program.computes[steps.start : steps.stop]
            for record in compute.uploads
            if record < _end_of_pass(evidence, steps.start // evidence.case.layers - 1)
        ]
        if early:
            return _past_the_end(evidence, min(early), steps.start, "its pass is announced later")
    extra = evidence.program.unused()
    if not extra:
        return None
    return _past_the_end(evidence, extra[0].record, evidence.steps, "nobody computes it")


def _end_of_pass(evidence: Evidence, number: int) -> int:
    """Where the logits of a pass are read."""
    reads = evidence.read_backs
    return reads[number] if number < len(reads) else len(evidence.stream)


def _past_the_end(evidence: Evidence, record: int, end: int, why: str) -> Fault:
    (layer,) = (upload.layer for upload in evidence.program.uploads if upload.record == record)
    return Fault(
        "past-the-end",
        f"Layers are uploaded for steps that were not announced: the last step is {end - 1}.",
        expected=f"{end} uploads, one for each step before end",
        got=f"layer {layer} is uploaded besides, and {why}",
        records=(record,),
        hint="Stop at end: while uploaded is below both step + N and end.",
        show=False,
    )


def nothing_is_pinned(evidence: Evidence) -> Fault | None:
    """While the passes run no memory is allocated, on the host or on the device, but by who computes and by
    ``new_slot``."""
    for index in running(evidence):
        record = evidence.stream[index]
        if isinstance(record, Allocate) and record.where in evidence.lines:
            heap = f"an {record.heap} heap" if record.heap == "upload" else f"memory ({record.heap})"
            return Fault(
                "allocates",
                "Memory is allocated while the passes run.",
                expected="what was there when the run began: the slots, and the ring's own staging memory",
                got=f"{heap} of {format_bytes(record.size)}",
                records=(index,),
                show=False,
            )
    return None


def steps_are_counted(evidence: Evidence) -> Fault | None:
    """Behind each step the direct queue signals ``consumed``, with the number of steps that are computed then."""
    computes = evidence.program.computes
    ends = [*(compute.record for compute in computes[1:]), len(evidence.stream)]
    for compute, end in zip(computes, ends, strict=True):
        signals = [
            record.value
            for record in (evidence.stream[index] for index in range(compute.record, end))
            if isinstance(record, Signal) and record.fence.startswith("consumed")
        ]
        if signals != [compute.step + 1]:
            return Fault(
                "not-counted",
                f"consumed does not say that step {compute.step} is computed.",
                expected=f"consumed = {compute.step + 1} on the direct queue, behind step {compute.step}",
                got=", ".join(f"consumed = {value}" for value in signals) or "no signal of consumed",
                records=(compute.record,),
                hint="device.direct_queue.signal(consumed, step + 1), once for each step.",
                show=False,
            )
    return None


def parity(evidence: Evidence) -> Fault | None:
    """As `rules.parity`. Of a long run no logits are computed again: which bytes each step read is known already."""
    return rules.parity(evidence) if evidence.steps < LONG else None
