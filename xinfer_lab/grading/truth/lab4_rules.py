"""Lab 4: rules of its own: claims that are true when they are made, no barrier too many, no upload past the end."""

from __future__ import annotations

from xinfer_lab.device.records import AssumeCommon, Copy, Dispatch, Record, Transition
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.views.labels import slot_of_buffer

__all__ = [
    "by_layer_number",
    "never_refilled",
    "no_claim_within_a_call",
    "no_needless_barrier",
    "nothing_past_the_end",
    "running",
]


def running(evidence: Evidence) -> list[int]:
    """Where the passes' records begin and end: what is loaded and freed around them does not count."""
    computes = evidence.program.computes
    last = computes[-1].record if computes else len(evidence.stream)
    return list(range(evidence.first_pass, last))


def by_layer_number(evidence: Evidence, fault: Fault) -> bool:
    """Whether every upload went to the slot layer mod N, or every step read there, and that makes a difference."""
    pool, layers = evidence.case.pool, evidence.case.layers
    filled = [(upload.layer, slot_of_buffer(upload.dst.buffer)) for upload in evidence.program.uploads]
    read = [
        (compute.step % layers, slot_of_buffer(view.buffer))
        for compute in evidence.program.computes
        for name, view in getattr(evidence.stream[compute.record], "operands", {}).items()
        if name.startswith(("self_attn.", "mlp."))
    ]
    return (
        fault.kind == "wrong-layer"
        and layers % pool != 0
        and len(filled) > 2 * pool
        and any(all(slot == layer % pool for layer, slot in found) for found in (filled, read))
    )


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
    """Each upload belongs to a step of the announced passes."""
    extra = evidence.program.unused()
    if not extra:
        return None
    steps = evidence.steps
    return Fault(
        "past-the-end",
        f"Layers are uploaded for steps that never come: the last step is {steps - 1}.",
        expected=f"{steps} uploads, one for each step before end",
        got=f"layer {extra[0].layer} is uploaded besides, and nobody computes it",
        records=(extra[0].record,),
        hint="Stop at end: while uploaded is below both step + N and end.",
        show=False,
    )
