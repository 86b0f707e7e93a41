"""Lab 4: the judges of `ensure` and of the gate, and the wrong ideas behind faults in them."""

from __future__ import annotations

from xinfer_lab.device.records import AssumeCommon, Copy, Dispatch, HostWait, Signal, Transition, Wait
from xinfer_lab.grading.programs import run_rules as rules
from xinfer_lab.grading.programs.call_rules import copies_nothing, makes_wait_only
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.grading.programs.verify_program import Named, ProgramJudge
from xinfer_lab.labs.lab4.judge.rules import (
    begun_once,
    by_layer_number,
    never_refilled,
    no_claim_within_a_call,
    no_needless_barrier,
    nothing_is_pinned,
    nothing_past_the_end,
    parity,
    running,
    steps_are_counted,
)

__all__ = ["ENSURE_FENCE", "ENSURE_STATE", "GATE", "HOST", "SHARED", "queue_of_fault", "waits_of"]


def waits_of(evidence: Evidence, queue: str, fence: str) -> list[int]:
    """The values that ``queue`` waits for, of the fences whose names begin with ``fence``."""
    records = evidence.stream
    return [r.value for r in records if isinstance(r, Wait) and r.queue == queue and r.fence.startswith(fence)]


def _race(kind: str, evidence: Evidence, fault: Fault) -> bool:
    return fault.kind == f"hazard:{kind}"


def _claims(evidence: Evidence) -> list[str]:
    """The slot buffers that were claimed to be in COMMON while the passes ran, in order."""
    found = (evidence.stream[i] for i in running(evidence))
    return [r.buffer for r in found if isinstance(r, AssumeCommon) and r.buffer.startswith("slot[")]


def _barriers_by_hand(evidence: Evidence) -> bool:
    """Whether the student's own lines recorded barriers; those that a list records by itself have the line of the
    command they are for."""
    line = ""
    for index in reversed(running(evidence)):
        record = evidence.stream[index]
        if isinstance(record, (Copy, Dispatch)):
            line = record.where
        elif isinstance(record, Transition) and record.where in evidence.lines and record.where != line:
            return True
    return False


def _claims_before_its_wait(evidence: Evidence, fault: Fault) -> bool:
    """Whether the direct queue waits soon after the claim: between it and the next kernel."""
    if fault.kind != "state:assumed-too-early" or not fault.records:
        return False
    for index in range(fault.records[0], len(evidence.stream)):
        record = evidence.stream[index]
        if isinstance(record, Wait) and record.queue == "direct":
            return True
        if isinstance(record, Dispatch):
            return False
    return False


def _one_buffer(evidence: Evidence, fault: Fault) -> bool:
    claims = {buffer.rpartition(".")[2] for buffer in _claims(evidence)}
    return fault.kind == "state:tracker-stale" and len(claims) == 1


def _other_slot(evidence: Evidence, fault: Fault) -> bool:
    return fault.kind in ("state:tracker-stale", "state:assumed-too-early") and bool(_claims(evidence))


def _never(evidence: Evidence, fault: Fault) -> bool:
    return fault.kind == "state:tracker-stale" and not _claims(evidence)


def _idle(evidence: Evidence, fault: Fault) -> bool:
    if fault.kind != "host-blocks":
        return False
    record = evidence.stream[fault.records[0]]
    return isinstance(record, HostWait) and record.fence.startswith("idle")


def _wrong_value(evidence: Evidence, fault: Fault) -> bool:
    return _race("read-after-write", evidence, fault) and bool(waits_of(evidence, "direct", "copied"))


def _another_fence(evidence: Evidence, fault: Fault) -> bool:
    """Whether the student's lines make the direct queue wait, but never for a copy."""
    waits = (evidence.stream[i] for i in running(evidence))
    own = [r.fence for r in waits if isinstance(r, Wait) and r.queue == "direct" and r.where in evidence.lines]
    return (
        _race("read-after-write", evidence, fault)
        and bool(own)
        and not any(fence.startswith("copied") for fence in own)
    )


def _waits_afterwards(evidence: Evidence, fault: Fault) -> bool:
    """Whether the direct queue waits for the copy only when the kernel that reads it has been submitted."""
    if not _race("read-after-write", evidence, fault):
        return False
    read = fault.records[0]
    before = [evidence.stream[i] for i in range(evidence.first_pass, read)]
    if any(isinstance(r, Wait) and r.queue == "direct" and r.fence.startswith("copied") for r in before):
        return False
    for index in range(read + 1, len(evidence.stream)):
        record = evidence.stream[index]
        if isinstance(record, Wait) and record.queue == "direct" and record.fence.startswith("copied"):
            return True
        if isinstance(record, Dispatch):
            return False
    return False


def queue_of_fault(evidence: Evidence, fault: Fault) -> str:
    """The queue of the record that a fault points at first."""
    return getattr(evidence.stream[fault.records[0]], "queue", "") if fault.records else ""


def _signals_early(evidence: Evidence, fault: Fault) -> bool:
    computes = evidence.program.computes
    if not _race("write-after-read", evidence, fault) or not computes:
        return False
    first = (r for r in list(evidence.stream)[: computes[0].record] if isinstance(r, Signal))
    return any(record.fence.startswith("consumed") for record in first)


SHARED = (
    Named(
        "Another device",
        "The notebook's own `device` is left over from the first cells. Use what you were given: ring.device, "
        "self.device.",
        lambda evidence, fault: fault.kind.startswith("raised:") and "another device" in fault.got,
        instead_of_hint=True,
    ),
    Named(
        "Nothing is returned",
        "A function without return gives back None. Its docstring says what it has to return.",
        lambda evidence, fault: fault.kind == "raised:TypeError" and fault.got.endswith("but returned None"),
    ),
    Named(
        "The wrong queue signals",
        "A signal says that all that was submitted to its own queue before it is done, and nothing of the other queue: "
        "the one that did the work signals.",
        lambda evidence, fault: fault.kind == "hazard:wrong-signaller",
    ),
    Named(
        "A queue waits for itself",
        "The direct queue runs in order: it is past its own signal by then, and the wait orders nothing. Who "
        "would run too far? The copy queue, "
        "which overwrites what is being read, or the host, which gives it back.",
        lambda evidence, fault: _race("self-wait", evidence, fault) and queue_of_fault(evidence, fault) == "direct",
    ),
    Named(
        "The wrong queue waits",
        "A wait holds back the queue that it is given to, and a queue is past its own signal anyway. The "
        "direct queue reads the slot, so "
        "the direct queue has to wait.",
        lambda evidence, fault: _race("self-wait", evidence, fault),
    ),
    Named(
        "Barriers by hand from a stale account",
        "The tracker still says what the copy queue left. A barrier from there is accepted by D3D12 for a "
        "buffer in COMMON, so nothing "
        "stops you, but it says what is not so and costs time. Wait, then assume_common(): no barrier is needed.",
        lambda evidence, fault: fault.kind == "state:tracker-stale" and _barriers_by_hand(evidence),
    ),
    Named(
        "COMMON assumed before the wait",
        "The order counts. Before the wait the copy may still run, and a buffer decays only when its call is "
        "over: first the wait, then "
        "the claim.",
        _claims_before_its_wait,
    ),
    Named(
        "COMMON assumed without any wait",
        "assume_common() waits for nobody and tells the device nothing. What makes it true is the direct "
        "queue's wait before it.",
        lambda evidence, fault: (
            fault.kind == "state:assumed-too-early"
            and bool(_claims(evidence))
            and not waits_of(evidence, "direct", "copied")
            and not _waits_afterwards(evidence, fault)
        ),
    ),
    Named(
        "Only one of the two buffers",
        "A slot has two buffers, attention and mlp, and the copy queue wrote both. Each has a state of its "
        "own, so go through slot.buffers.",
        _one_buffer,
    ),
    Named(
        "The account is never brought up to date",
        "The wait makes the bytes right. The tracker cannot know of it: it still holds what the copy queue "
        "left. Call assume_common() on each "
        "buffer after the wait. (D3D12 itself would let it pass.)",
        _never,
    ),
    Named(
        "COMMON asserted in the middle of a call",
        "Within one call a buffer stays in the state of its first use until a barrier takes it elsewhere; it "
        "decays when the call is over. "
        "Claim COMMON before the list begins, and let the list record the barrier that it needs.",
        lambda evidence, fault: fault.kind in ("state:rejected", "claim-in-call"),
    ),
    Named(
        "COMMON assumed for another slot",
        "The claim is about other buffers than the ones that are used next, or comes in some steps only. "
        "Claim it for each buffer of this "
        "step's slot, in every step.",
        _other_slot,
    ),
    Named(
        "Everything is synchronised",
        "wait_idle() makes every race go away, and with them all that ran at the same time. One wait of one "
        "queue is enough.",
        _idle,
    ),
    Named(
        "The host waits in place of a queue",
        "The numbers are right, but while the host blocks it submits nothing.",
        lambda evidence, fault: fault.kind == "host-blocks",
    ),
    Named(
        "A wait for another fence",
        "The direct queue waits, but for a fence that says nothing of this copy. "
        "ring.engine.copied does, at slot.ready.",
        _another_fence,
    ),
    Named(
        "Nobody waits for the copy",
        "Submitted is not arrived. The direct queue starts a kernel as soon as it can, whatever the copy "
        "queue is at, and no state holds it back.",
        lambda evidence, fault: (
            _race("read-after-write", evidence, fault) and not waits_of(evidence, "direct", "copied")
        ),
    ),
    Named(
        "The wait comes after the read",
        "A queue takes its commands in order: what is submitted before the wait does not wait. The wait "
        "belongs before the computing.",
        _waits_afterwards,
    ),
    Named(
        "The wait is not for this slot's copy",
        "The value that is waited for belongs to another upload. slot.ready is the value of what was "
        "uploaded last into this slot.",
        _wrong_value,
    ),
    Named(
        "The signal comes before the read",
        "A signal says: everything submitted to this queue so far is done. The layer's computing has to be "
        "submitted before it.",
        _signals_early,
    ),
    Named(
        "The wait for the reader is too little or too late",
        "The copy queue waits for consumed, but for a smaller value than it needs, or after the upload: before step is "
        "uploaded, step - N must be computed, and consumed is at step - N + 1 then.",
        lambda evidence, fault: (
            _race("write-after-read", evidence, fault) and bool(waits_of(evidence, "copy", "consumed"))
        ),
    ),
    Named(
        "Nobody waits for the reader",
        "The copy queue has to wait until the direct queue has read the slot's last layer: step - N must be "
        "done before step is uploaded.",
        lambda evidence, fault: _race("write-after-read", evidence, fault),
    ),
    Named(
        "Wait before signal",
        "A wait names a value that was submitted before it. The signal comes first in the program, then what "
        "waits for it.",
        lambda evidence, fault: fault.kind == "raised:EarlyWait",
    ),
    Named(
        "A fence value that cannot be",
        "A fence has one signalling queue and its values only grow, over all passes. Number by the running "
        "step: step s signals s + 1.",
        lambda evidence, fault: fault.kind == "raised:FenceError",
    ),
    Named(
        "Layers made resident",
        "The plan has room for N slots. Keeping what was uploaded makes every race go away, and the reason "
        "for streaming too.",
        lambda evidence, fault: fault.kind in ("raised:OutOfDeviceMemory", "over-budget", "not-uploaded"),
    ),
    Named(
        "Only the first passes are announced",
        "begin is called again for the passes that follow, and steps run on: end is the step that comes now plus the "
        "steps that were announced, and the slots have to be filled again.",
        begun_once,
    ),
    Named(
        "Slot by layer number",
        "slot = layer mod N breaks where one pass ends and the next begins, unless N divides L. Number by "
        "the running step.",
        by_layer_number,
    ),
    Named(
        "Nothing refills the slots",
        "The first N layers are there, and no upload came after them. When a step's computing has been submitted and "
        "signalled, its slot is refilled for step + N.",
        never_refilled,
    ),
    Named(
        "Slots are not taken in turn",
        "Step s reads slot s mod N, N being ring.pool, whatever it is; and the upload for step s goes there.",
        lambda evidence, fault: fault.kind == "wrong-layer",
    ),
    Named(
        "Waits for more than the slot",
        "The numbers are right, but a wait for later work puts in order what could run at the same time.",
        lambda evidence, fault: fault.kind == "no-overlap",
    ),
    Named(
        "Not far enough ahead",
        "With N slots, N uploads can be on their way: as soon as step s has been handed in, the upload for "
        "step s + N goes out.",
        lambda evidence, fault: fault.kind in ("late-upload", "not-filled"),
    ),
)

_BLAME = {
    "hazard:read-after-write": "ensure",
    "hazard:write-after-read": "refill",
    "state:": "ensure",
    "wrong-layer": "refill",
    "not-": "refill",
    "past-the-end": "refill",
    "late-upload": "release",
    "raised:": "refill",
}

_BYTES = (rules.given_inputs_only, rules.right_queues, rules.right_layers)
_FENCES = (rules.no_hazard, rules.each_step_uploads_once)
_AHEAD = (rules.host_never_blocks, rules.slots_filled_first, rules.uploads_ahead, rules.uploads_overlap)
_STATES = (rules.no_state_fault, no_claim_within_a_call, no_needless_barrier)
_DIRECT_ONLY = makes_wait_only(
    "ensure",
    frozenset({"direct"}),
    "What the copy queue waits for is settled where it uploads; ensure is about reading.",
)

HOST = {"host-blocks": "host", "host-sleeps": "host"}
_ENSURE = {
    "hazard:": "arrived",
    "wrong-layer": "arrived",
    "other-queue": "two_queues",
    "uploads": "uploads_nothing",
    "raised:TypeError": "returns",
    "raised:ValueError": "returns",
}

ENSURE_FENCE = ProgramJudge(
    (
        *_BYTES,
        rules.two_queues_only,
        copies_nothing("ensure"),
        *_FENCES,
        *_AHEAD,
        _DIRECT_ONLY,
        nothing_is_pinned,
        rules.parity,
    ),
    "The direct queue waits for its slot's copy, and for no more than that.",
    SHARED,
    _BLAME,
    named={
        **_ENSURE,
        **HOST,
        "no-overlap": "no_more",
        "queue-waits": "direct_only",
        "allocates": "no_memory",
    },
)
ENSURE_STATE = ProgramJudge(
    (*_BYTES, rules.two_queues_only, copies_nothing("ensure"), *_STATES, *_FENCES, rules.parity),
    "tracker == device state at each ExecuteCommandLists.",
    SHARED,
    _BLAME,
    named={
        **_ENSURE,
        "state:tracker-stale": "told",
        "state:assumed-too-early": "true_when_said",
        "state:rejected": "between_calls",
        "claim-in-call": "between_calls",
        "needless-barrier": "no_barrier",
    },
)
GATE = ProgramJudge(
    (
        *_BYTES,
        *_FENCES,
        *_STATES,
        *_AHEAD,
        nothing_past_the_end,
        steps_are_counted,
        rules.two_queues_only,
        nothing_is_pinned,
        parity,
    ),
    "streaming vs resident max abs diff = 0, no hazard, no state fault, within budget, copies beside computing.",
    SHARED,
    _BLAME,
    named={
        **HOST,
        "wrong-layer": "right_bytes",
        "partial-upload": "right_bytes",
        "not-uploaded": "each_once",
        "uploaded-twice": "each_once",
        "past-the-end": "end",
        "hazard:": "order",
        "state:": "account",
        "claim-in-call": "account",
        "needless-barrier": "no_barrier",
        "raised:EarlyWait": "signal_first",
        "raised:FenceError": "counted",
        "not-counted": "counted",
        "not-filled": "filled",
        "late-upload": "ahead",
        "no-overlap": "beside",
        "other-queue": "two_queues",
        "raised:OutOfDeviceMemory": "plan",
        "over-budget": "plan",
        "allocates": "no_memory",
    },
)
