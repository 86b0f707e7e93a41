"""Rules for a streamed run: each is a function of the evidence that returns the fault it finds, or None."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

from xinfer_lab.device.device import WRITE_BACK
from xinfer_lab.device.errors import DeviceError, OutOfDeviceMemory, format_bytes
from xinfer_lab.device.hazard import Hazard
from xinfer_lab.device.records import AssumeCommon, HostWait, HostWrite, Wait
from xinfer_lab.grading.programs.evidence import Evidence, Fault, reference_logits
from xinfer_lab.grading.programs.host_rules import (
    awaited,
    host_never_blocks,
    host_never_sleeps,
    host_waits_for_readers_only,
)
from xinfer_lab.grading.programs.signal_rules import signals_each_step
from xinfer_lab.residency.parity import compare_logits, parity_line

__all__ = [
    "Rule",
    "announced",
    "awaited",
    "each_step_uploads_once",
    "given_inputs_only",
    "hazard_fault",
    "host_never_blocks",
    "host_never_sleeps",
    "host_waits_for_readers_only",
    "no_hazard",
    "no_state_fault",
    "parity",
    "right_layers",
    "right_queues",
    "signals_each_step",
    "slots_filled_first",
    "telling_hazard",
    "two_queues_only",
    "uploads_ahead",
    "uploads_overlap",
]

Rule = Callable[[Evidence], Fault | None]

_RACES = {
    "read-after-write": "reads bytes that may not have arrived",
    "write-after-read": "overwrites bytes that may still be read",
    "write-after-write": "overwrites bytes that may still be written",
    "host-write": "writes staging memory that a copy may still read",
    "host-read": "reads memory that a copy may still write",
    "use-after-free": "uses memory that was given back",
    "self-wait": "waits for its own signal, which orders nothing",
    "early-wait": "waits for a value that nobody was asked to signal",
}


def given_inputs_only(evidence: Evidence) -> Fault | None:
    """Every byte comes from the model's weights or from the given tokens."""
    given = {tokens.numpy().tobytes() for tokens in evidence.case.feed()}
    inputs = evidence.stream.inputs
    for name, data in inputs.items():
        if bytes(data) not in given:
            return Fault(
                "inputs",
                "The stream brings bytes of its own.",
                expected="bytes from the model's weights and the given tokens only",
                got=f"an input {name!r} of {len(data)} bytes",
                show=False,
            )
    weights = evidence.case.weights()
    for index, record in enumerate(evidence.stream):
        if (
            isinstance(record, HostWrite)
            and record.source.name not in inputs
            and weights.nbytes(record.source.name) is None
        ):
            return Fault("inputs", f"The source {record.source.name!r} is no weight of the model.", records=(index,))
    return None


def right_queues(evidence: Evidence) -> Fault | None:
    """Layers are uploaded on the copy queue and computed on the direct queue."""
    for upload in evidence.program.uploads:
        if upload.queue != "copy" and upload.record > evidence.first_pass:
            return Fault(
                "queue",
                f"Layer {upload.layer} is uploaded on the {upload.queue} queue.",
                expected="the copy queue uploads while the direct queue computes",
                got=f"a copy on the {upload.queue} queue, which runs it in turn with the kernels",
                records=(upload.record,),
                hint="Submit the copy with device.copy_queue.",
            )
    return None


def two_queues_only(evidence: Evidence) -> Fault | None:
    """Nothing is submitted to any queue but the direct and the copy queue."""
    for index, record in enumerate(evidence.stream):
        queue = getattr(record, "queue", "direct")
        if queue not in ("direct", "copy"):
            return Fault(
                "other-queue",
                f"The {queue} queue is given something to do.",
                expected="commands on the direct queue and on the copy queue, and on no other",
                got=f"{type(record).__name__} on the {queue} queue",
                records=(index,),
                hint="Two queues do it all: one uploads, the other computes.",
                show=False,
            )
    return None


def right_layers(evidence: Evidence) -> Fault | None:
    """Every computed layer finds its own weights in its slot, whatever came before."""
    layers = evidence.case.layers
    for compute in evidence.program.computes:
        wanted = compute.step % layers
        if compute.layers != (wanted,):
            found = "no upload at all" if not compute.layers else "layer " + " and ".join(map(str, compute.layers))
            return Fault(
                "wrong-layer",
                f"Layer {wanted} of pass {compute.step // layers} is computed with other weights.",
                expected=f"the weights of layer {wanted} in its slot",
                got=found,
                records=(*compute.uploads, compute.record),
            )
    return None


def no_hazard(evidence: Evidence) -> Fault | None:
    """No two accesses race."""
    if not evidence.findings.hazards:
        return None
    hazard = evidence.findings.hazards[0]
    return hazard_fault(evidence, hazard)


def telling_hazard(hazards: Sequence[Hazard]) -> Hazard:
    """Of the races of the first command that has any, the one with the latest other command: what mends it mends the
    others."""
    return max((hazard for hazard in hazards if hazard.second == hazards[0].second), key=lambda hazard: hazard.first)


def hazard_fault(evidence: Evidence, hazard: Hazard) -> Fault:
    """The fault that a hazard is."""
    if hazard.kind == "self-wait":
        return _self_wait(evidence, hazard)
    what = _RACES.get(hazard.kind, "races with another one")
    return Fault(
        f"hazard:{hazard.kind}",
        f"A race: a command {what} ({hazard.kind}).",
        expected="every two accesses to the same bytes in an order that the fences fix",
        got=hazard.report(evidence.text_of),
        records=(hazard.second, hazard.first),
    )


_SIGNALLERS = {
    "copied": "copy",
    "consumed": "direct",
    "arrived": "copy",
    "released": "direct",
    "saved": WRITE_BACK,
}
"""Which queue does what a fence of that name counts."""


def _self_wait(evidence: Evidence, hazard: Hazard) -> Fault:
    """A wait for one's own signal: the fault of the wait, unless the signal is on a queue that did not do the work."""
    signal, wait = evidence.stream[hazard.first], evidence.stream[hazard.second]
    queue, fence = getattr(signal, "queue", ""), getattr(signal, "fence", "")
    worker = next((worker for name, worker in _SIGNALLERS.items() if fence.startswith(name)), queue)
    waits = f"{fence} >= {getattr(wait, 'value', 0)}"
    if worker != queue:
        return Fault(
            "hazard:wrong-signaller",
            f"The {queue} queue signals {fence}, which speaks of the {worker} queue's work.",
            expected=f"a signal of {fence} by the {worker} queue, behind the work that it counts",
            got=f"the {queue} queue signals it, and so waits for itself where it waits for {waits} (self-wait)",
            records=(hazard.first, hazard.second),
        )
    room = any(call.name == "allocate" and call.begin <= hazard.second < call.end for call in evidence.calls)
    return Fault(
        "hazard:self-wait",
        f"A wait that orders nothing: the {queue} queue waits for its own signal (self-wait).",
        expected="a wait of the one that would run too far; a queue is past its own signal anyway",
        got=f"the {queue} queue waits for {waits}, and the host goes on writing"
        if room
        else hazard.report(evidence.text_of),
        records=(hazard.second, hazard.first),
    )


def no_state_fault(evidence: Evidence) -> Fault | None:
    """The device takes every state, and the tracker agrees with it at each call."""
    if not evidence.findings.state_faults:
        return None
    fault = evidence.findings.state_faults[0]
    claims = [
        index
        for index in range(fault.first or 0, fault.record)
        if isinstance(claim := evidence.stream[index], AssumeCommon) and claim.buffer == fault.buffer
    ]
    records = [*(claims if fault.kind == "rejected" else ()), fault.record]
    return Fault(
        f"state:{fault.kind}",
        f"{fault.headline[0].upper()}{fault.headline[1:]}.",
        expected="tracker == device state at each ExecuteCommandLists, and no barrier from a state that is not there",
        got=fault.report(evidence.text_of),
        records=tuple(records if fault.first is None else [*records, fault.first]),
        hint="A barrier that is missing behind a claim of COMMON: take the claim out of the call, and the list records "
        "that barrier by itself."
        if fault.kind == "rejected" and claims
        else "",
    )


def each_step_uploads_once(evidence: Evidence) -> Fault | None:
    """Every computed layer has an upload of its own, and at most ``pool`` uploads are for steps that never come."""
    program = evidence.program
    if len(program.computes) != evidence.steps:
        return Fault(
            "incomplete",
            "The run is not complete.",
            expected=f"{evidence.steps} computed layers",
            got=f"{len(program.computes)}",
        )
    used: dict[int, int] = {}
    for compute in program.computes:
        for record in compute.uploads:
            if record in used and used[record] != compute.step:
                return Fault(
                    "not-uploaded",
                    f"Step {compute.step} (layer {compute.step % evidence.case.layers}) computes with weights left "
                    f"from step {used[record]}.",
                    expected="each layer uploaded once for each pass: the slots are refilled",
                    got="no upload of its own, so more than the pool stays resident",
                    records=(compute.record, record),
                    hint="Refill a slot as soon as its layer has been computed.",
                )
            used[record] = compute.step
        moved = sum(upload.weight_bytes for upload in program.uploads_of(compute.step))
        if moved < evidence.layer_bytes:
            return Fault(
                "partial-upload",
                f"Step {compute.step} computes with weights that were not uploaded whole.",
                expected=f"{evidence.layer_bytes} bytes of layer {compute.step % evidence.case.layers}",
                got=f"{moved} bytes",
                records=(*compute.uploads, compute.record),
            )
    extra = program.unused()
    wasted = sum(upload.weight_bytes for upload in extra)
    if wasted > evidence.case.pool * evidence.layer_bytes:
        return Fault(
            "uploaded-twice",
            "Layers are uploaded that no step uses.",
            expected=f"one upload a step, at most {evidence.case.pool} more at the end",
            got=f"{format_bytes(wasted)} uploaded for nothing, first layer {extra[0].layer}",
            records=(extra[0].record,),
        )
    return None


def announced(evidence: Evidence) -> list[range]:
    """The steps of each announcement of passes."""
    ends = accumulate(passes * evidence.case.layers for passes in evidence.case.runs)
    return [range(begin, end) for begin, end in pairwise((0, *ends))]


def slots_filled_first(evidence: Evidence) -> Fault | None:
    """The uploads for the first ``pool`` steps that are announced are submitted before the first of them is computed:
    every slot is put to use.
    """
    computes, pool = evidence.program.computes, evidence.case.pool
    for steps in announced(evidence):
        for compute in computes[steps.start : min(steps.start + pool, steps.stop)]:
            if compute.uploads and max(compute.uploads) > computes[steps.start].record:
                return Fault(
                    "not-filled",
                    f"Not all slots are filled at the start: layer {compute.step % evidence.case.layers} comes later.",
                    expected=f"the uploads for the first {len(steps[:pool])} steps submitted before step "
                    f"{steps.start} is computed",
                    got=f"the upload for step {compute.step} submitted after it",
                    records=(max(compute.uploads), computes[steps.start].record),
                    hint="Fill every slot in begin: nobody reads them yet.",
                )
    return None


def uploads_ahead(evidence: Evidence) -> Fault | None:
    """The upload for step s + pool is submitted before step s + 1 is computed: ahead, not when it is needed."""
    pool, computes = evidence.case.pool, evidence.program.computes
    for steps in announced(evidence) if pool > 1 else ():
        for step in steps[:-pool]:
            ahead = step + pool
            uploads, following = computes[ahead].uploads, computes[step + 1].record
            if uploads and max(uploads) > following:
                layer = ahead % evidence.case.layers
                return Fault(
                    "late-upload",
                    f"The upload of layer {layer} (step {ahead}) is submitted too late to run ahead.",
                    expected=f"submitted once step {step} has been given to the direct queue, before step {step + 1}",
                    got=f"submitted after step {step + 1}",
                    records=(max(uploads), following),
                    hint="Refill a slot in release, as soon as its last read has been submitted.",
                )
    return None


def uploads_overlap(evidence: Evidence) -> Fault | None:
    """No happens-before path orders the upload for step s + pool against the computing of steps s + 1 .. s + pool -
    1.
    """
    pool, computes = evidence.case.pool, evidence.program.computes
    for steps in announced(evidence):
        for step in steps[:-pool]:
            for upload in computes[step + pool].uploads:
                for between in range(step + 1, step + pool):
                    if not evidence.ordering.concurrent(upload, computes[between].record):
                        return _ordered(evidence, upload, step, between)
    return None


def _ordered(evidence: Evidence, upload: int, step: int, between: int) -> Fault:
    computes, layers = evidence.program.computes, evidence.case.layers
    later = step + evidence.case.pool
    first, second = sorted((upload, computes[between].record))
    # The model itself waits for its logits; that is not what put these two in order.
    blocking = set(evidence.host_waits())
    waits = [i for i in range(first, second) if isinstance(evidence.stream[i], Wait) or i in blocking]
    waits.sort(key=lambda i: evidence.stream[i].where not in evidence.lines)
    if any(isinstance(evidence.stream[i], HostWait) for i in waits):
        got = "the host blocks in between, so nothing runs side by side"
        hint = "Let a queue wait instead of the host: queue.wait(fence, value)."
    else:
        got = "a wait puts one after the other"
        hint = "Wait for no more than the slot's own fence value."
    return Fault(
        "no-overlap",
        f"The upload of layer {later % layers} (step {later}) cannot overlap the computing of layer "
        f"{between % layers} (step {between}).",
        expected="nothing orders the two: the copy queue works while the direct queue computes",
        got=got,
        records=(*waits[:1], upload, computes[between].record),
        hint=hint,
    )


def parity(evidence: Evidence) -> Fault | None:
    """The stream, replayed with the checker's own weights under the case's budget, gives the resident run's logits
    byte for byte.
    """
    try:
        replayed = evidence.replay()
    except OutOfDeviceMemory as error:
        return Fault(
            "over-budget",
            "More device memory is used than the plan allows.",
            expected=f"a peak of at most {format_bytes(evidence.case.memory)}: {evidence.case.pool} slots beside "
            f"what stays resident",
            got=str(error),
        )
    except DeviceError as error:
        return Fault("inadmissible", f"The stream cannot be run: {type(error).__name__}.", got=str(error))
    expected = reference_logits(evidence.case)
    got = replayed.logits_as(expected)
    if got is None:
        return Fault(
            "incomplete",
            "The run is not complete.",
            expected=f"the logits of {len(expected)} passes read back",
            got=f"{len(replayed.logits)}",
        )
    equal, largest = compare_logits(expected, got)
    if equal:
        return None
    step = next(i for i, (a, b) in enumerate(zip(expected, got, strict=True)) if not compare_logits([a], [b])[0])
    return Fault(
        "parity",
        "The logits differ from the resident run's.",
        expected=parity_line(0.0),
        got=f"{parity_line(largest)}, first in pass {step}"
        + (" (NaN: memory was read that nobody had written)" if largest != largest else ""),
    )
