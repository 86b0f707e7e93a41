"""Lab 4: the judges of the clinic, where four broken streamers are mended without losing what makes them streamers."""

from __future__ import annotations

from collections.abc import Mapping

from xinfer_lab.device.records import Dispatch, Free, Record, Wait
from xinfer_lab.grading.choices import choice
from xinfer_lab.grading.programs import run_rules as rules
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.grading.programs.verify_program import Named, ProgramJudge
from xinfer_lab.grading.verify_values import Judge
from xinfer_lab.labs.lab4.judge.ring import HOST, SHARED, queue_of_fault, waits_of
from xinfer_lab.labs.lab4.judge.rules import by_layer_number, no_claim_within_a_call, nothing_is_pinned

__all__ = ["CLINIC"]


def _weights_of(record: Record) -> frozenset[str]:
    """The buffers that hold the weights of a computed layer."""
    assert isinstance(record, Dispatch)
    return frozenset(view.buffer for name, view in record.operands.items() if name.startswith(("self_attn.", "mlp.")))


def memory_of_its_own(evidence: Evidence) -> Fault | None:
    """Each step's memory is given back before the run is over, once its layer has been computed; no step uses
    another's."""
    computes, seen = evidence.program.computes, set[str]()
    for compute in computes:
        buffers = _weights_of(evidence.stream[compute.record])
        if buffers & seen:
            return Fault(
                "reused",
                f"Step {compute.step} computes from memory that an earlier step used.",
                expected="memory of its own for each step, given back when its layer has been computed",
                got=f"{', '.join(sorted(buffers & seen))} again",
                records=(compute.record,),
                hint="Keep the streamer as it is; the one line that is missing makes free() wait.",
            )
        seen |= buffers
    last = computes[-1].record if computes else 0
    frees = [(index, record.buffer) for index, record in enumerate(evidence.stream) if isinstance(record, Free)]
    early, ever = {buffer for index, buffer in frees if index < last}, {buffer for _, buffer in frees}
    # The last steps' memory may go when all is computed; nobody else gives it back.
    in_time = [early] * (len(computes) - evidence.case.pool) + [ever] * evidence.case.pool
    pairs = zip(computes, in_time, strict=False)
    kept = [compute for compute, freed in pairs if not _weights_of(evidence.stream[compute.record]) <= freed]
    if kept:
        return Fault(
            "kept",
            f"The memory of step {kept[0].step} is not given back when its layer is done.",
            expected="memory given back as soon as its layer has been computed",
            got="it is kept",
            records=(kept[0].record,),
        )
    return None


def one_address(evidence: Evidence) -> Fault | None:
    """Every step is computed from the same memory."""
    computes = evidence.program.computes
    first = _weights_of(evidence.stream[computes[0].record]) if computes else frozenset()
    for compute in computes:
        buffers = _weights_of(evidence.stream[compute.record])
        if buffers != first:
            return Fault(
                "many-addresses",
                f"Step {compute.step} is computed from {', '.join(sorted(buffers))}.",
                expected=f"every step computed from {', '.join(sorted(first))}: that is what this streamer is for",
                got="other memory than in step 0",
                records=(compute.record,),
            )
    return None


def overlaps_the_step(evidence: Evidence) -> Fault | None:
    """No happens-before path orders the upload for step s + pool against the computing of step s: a slot more than are
    filled ahead is there for that."""
    pool, computes = evidence.case.pool, evidence.program.computes
    for compute in computes[: -pool or None]:
        for upload in computes[compute.step + pool].uploads if compute.step + pool < len(computes) else ():
            if not evidence.ordering.concurrent(upload, compute.record):
                waits = [i for i in range(compute.record, upload) if isinstance(evidence.stream[i], Wait)]
                return Fault(
                    "waits-for-its-step",
                    f"The upload for step {compute.step + pool} waits until step {compute.step} is computed.",
                    expected=f"a wait for the slot's last reader, step {compute.step - 1}: consumed >= {compute.step}",
                    got="a wait for a step more, so that nothing is copied while it is computed",
                    records=(*waits[-1:], upload, compute.record),
                    hint="Keep the streamer as it is but for the line that is not where it should be.",
                )
    return None


def _race(kind: str, fault: Fault) -> bool:
    return fault.kind == f"hazard:{kind}"


def no_hazard(evidence: Evidence) -> Fault | None:
    """As `rules.no_hazard`; of several races of one command, the one that tells most."""
    hazards = evidence.findings.hazards
    return rules.hazard_fault(evidence, rules.telling_hazard(hazards)) if hazards else None


_BYTES = (rules.given_inputs_only, rules.two_queues_only, rules.right_queues)
_SOUND = (no_hazard, rules.no_state_fault, no_claim_within_a_call, rules.right_layers, rules.each_step_uploads_once)
_AHEAD = (rules.uploads_ahead, rules.uploads_overlap)

_IN_TURN = Named(
    "Slots are not taken in turn",
    "This streamer has a slot more than it fills ahead: step s is in slot s mod (N + 1), and its upload goes there. "
    "Keep it as it is, but for the one line.",
    lambda evidence, fault: fault.kind == "wrong-layer" and not by_layer_number(evidence, fault),
)
_ORDERING = (
    Named(
        "Two queues for one",
        "The wait on the copy queue is still there. It orders nothing, since a queue is past its own signal "
        "anyway; take it away.",
        lambda evidence, fault: (
            _race("self-wait", fault)
            and queue_of_fault(evidence, fault) == "copy"
            and bool(waits_of(evidence, "direct", "copied"))
        ),
    ),
    Named(
        "Another streamer",
        "What this one has a slot more for is lost: it can copy while the step before is computed, and that one alone "
        "has to be over. Keep it as it is, but for the one line.",
        lambda evidence, fault: fault.kind == "waits-for-its-step",
    ),
    _IN_TURN,
)
_LIFETIME = (
    Named(
        "Freed too early",
        "free() acts at once, on the host. The kernel that reads the memory has only been submitted. Let the "
        "host wait for the fence that "
        "says that this step has been computed, then free.",
        lambda evidence, fault: _race("use-after-free", fault) or fault.kind == "inadmissible",
    ),
    Named(
        "Waits for the copy, frees under the kernel",
        "The host knows then that the bytes have arrived, and nothing of the kernel that reads them. "
        "`consumed` is the fence of the reader.",
        lambda evidence, fault: fault.kind == "host-blocks" and _waits_for_copies(evidence, fault),
    ),
    Named(
        "Everything is synchronised",
        "wait_idle() waits for both queues, and with it all that ran at the same time is gone. Here the host does have "
        "to wait, but for this step's reader alone: ring.consumed.wait(step + 1).",
        lambda evidence, fault: fault.kind == "host-blocks",
        instead_of_hint=True,
    ),
    Named(
        "Memory kept in place of given back",
        "Then nothing is freed too early, and each step takes more. The plan has room for N layers: give each back "
        "when its reader is done.",
        lambda evidence, fault: fault.kind in ("raised:OutOfDeviceMemory", "over-budget", "kept"),
        instead_of_hint=True,
    ),
    Named(
        "Another streamer",
        "Reusing slots is what Lab 3 does, and does better. Here the question is what makes giving memory back safe.",
        lambda evidence, fault: fault.kind == "reused",
    ),
)
_WRAP = (
    Named(
        "Slot by layer number",
        "When a pass ends, layer 0 follows layer L - 1, but the slots of the two need not follow one another. Unless "
        "the number of slots divides L, an upload for the next pass may overwrite a layer that is still to be "
        "computed. Number by the running step.",
        by_layer_number,
    ),
    _IN_TURN,
)
_MID_CALL = (
    Named(
        "COMMON asserted in the middle of a call",
        "After the copy `work` is in COPY_DEST, and stays so until a barrier or the end of the call. "
        "assume_common() changes the account, not the "
        "device: the list then sees no need for the barrier that it would have recorded. Make the claim "
        "before the list begins.",
        lambda evidence, fault: fault.kind in ("state:rejected", "claim-in-call"),
    ),
    Named(
        "Another streamer",
        "Computing from the pads themselves needs no copy, and no list with two uses of one buffer. But this "
        "streamer promises one address.",
        lambda evidence, fault: fault.kind == "many-addresses",
    ),
)


def _waits_for_copies(evidence: Evidence, fault: Fault) -> bool:
    return getattr(evidence.stream[fault.records[0]], "fence", "").startswith("copied")


_RULES = {
    **HOST,
    "hazard:": "order",
    "inadmissible": "order",
    "raised:EarlyWait": "order",
    "state:": "account",
    "claim-in-call": "account",
    "wrong-layer": "right_bytes",
    "partial-upload": "right_bytes",
    "late-upload": "ahead",
    "no-overlap": "beside",
    "not-uploaded": "each_once",
    "uploaded-twice": "each_once",
    "raised:OutOfDeviceMemory": "plan",
    "over-budget": "plan",
    "allocates": "no_memory",
    "other-queue": "two_queues",
}


def _judge(
    passed: str,
    name: str,
    named: tuple[Named, ...],
    *more: rules.Rule,
    host: rules.Rule = rules.host_never_blocks,
    own: Mapping[str, str] | None = None,
) -> ProgramJudge:
    asked = (*_BYTES, *_SOUND, host, *_AHEAD, *more, nothing_is_pinned, rules.parity)
    return ProgramJudge(asked, passed, (*named, *SHARED), {"": name}, named={**_RULES, **(own or {})})


CLINIC: dict[str, Judge | ProgramJudge] = {
    "lab4.explain_ordering": choice(
        "C",
        {
            "A": (
                "The copy queue does not overwrite anything here that is still read: look at which access comes first."
            ),
            "B": "The claim is early indeed, but that is bookkeeping, and follows from the fault that you look for.",
            "D": "A wait for a value that was submitted long ago is fine: fence values only grow.",
        },
    ),
    "lab4.ordering": _judge(
        "The queue that reads waits for the queue that writes.",
        "ordering",
        _ORDERING,
        overlaps_the_step,
        own={"waits-for-its-step": "slot_more"},
    ),
    "lab4.explain_lifetime": choice(
        "A",
        {
            "B": "The direct queue waits for the copy before it computes; read the report's two lines again.",
            "C": "Each step has memory of its own, and no slot is filled twice.",
            "D": "The claim comes after the wait, and no state fault is reported.",
        },
    ),
    "lab4.lifetime": _judge(
        "Memory is given back when its reader is done, and not before.",
        "lifetime",
        _LIFETIME,
        memory_of_its_own,
        host=rules.host_waits_for_readers_only,
        own={"reused": "own_memory", "kept": "given_back"},
    ),
    "lab4.explain_wrap_around": choice(
        "D",
        {
            "A": "Every read waits for its slot's last copy: no hazard is reported, and rightly.",
            "B": "Every upload waits until step - N has been computed: no hazard is reported, and rightly.",
            "C": "The tracker agrees with the device at each call: no state fault is reported, and rightly.",
        },
    ),
    "lab4.wrap_around": _judge(
        "Every step finds its own layer, on both sides of the token boundary.", "wrap_around", _WRAP
    ),
    "lab4.explain_mid_call": choice(
        "B",
        {
            "A": "The direct queue waits for the pad's copy before the list begins, and no hazard is reported.",
            "C": "Both commands are on the direct queue, which runs them in order; nothing races.",
            "D": "A kernel may use a buffer that was copied to in the same call, with a barrier in between.",
        },
    ),
    "lab4.mid_call": _judge(
        "No claim stands within a call, and tracker and device agree at each call.",
        "mid_call",
        _MID_CALL,
        one_address,
        own={"many-addresses": "one_address", "state:rejected": "between_calls", "claim-in-call": "between_calls"},
    ),
}
"""Piece -> judge, of the clinic's pieces."""
