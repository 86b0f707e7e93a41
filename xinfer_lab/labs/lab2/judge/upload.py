"""Lab 2: the judges of the copy engine, and the wrong ideas behind faults in it."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from xinfer_lab.device.records import Copy, HostWait, HostWrite, Signal, Wait
from xinfer_lab.grading.programs import run_rules as rules
from xinfer_lab.grading.programs.call_rules import (
    asks_the_ring,
    host_waits_in_the_ring_only,
    in_a_call,
    makes_wait_only,
    signals_only,
)
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.grading.programs.verify_program import Named, ProgramJudge
from xinfer_lab.labs.lab2.judge.fences import FENCE_IDEAS, counts, race
from xinfer_lab.labs.lab2.judge.staging_rules import pins, waits_for_room_only
from xinfer_lab.labs.lab2.layers import DEPTH, LayerScript
from xinfer_lab.qwen2.layout import tensor_name
from xinfer_lab.residency.weights import SyntheticWeights
from xinfer_lab.views.labels import slot_of_buffer

__all__ = ["UPLOAD", "UPLOAD_ASYNC", "UPLOAD_IDEAS", "in_the_ring"]


def _uploads(evidence: Evidence) -> list[tuple[int, Copy]]:
    """Every copy into a slot, with its record's index."""
    records = enumerate(evidence.stream)
    return [(i, r) for i, r in records if isinstance(r, Copy) and slot_of_buffer(r.dst.buffer) is not None]


def _reads(evidence: Evidence) -> list[list[int]]:
    """The records by which the program reads each upload, in order."""
    found: list[list[int]] = [[] for _ in range(evidence.steps)]
    for index, record in enumerate(evidence.stream):
        if isinstance(record, Copy) and record.dst.buffer == "arrived.out":
            found[record.dst.offset // evidence.case.layout.nbytes].append(index)
    return found


def on_the_copy_queue(evidence: Evidence) -> Fault | None:
    """Slots are filled on the copy queue."""
    for index, copy in _uploads(evidence):
        if copy.queue != "copy":
            return Fault(
                "queue",
                f"{copy.dst.buffer} is filled on the {copy.queue} queue.",
                expected="a copy on the copy queue",
                got=f"a copy on the {copy.queue} queue, which could compute meanwhile",
                records=(index,),
                hint="Submit the copy with self.queue.",
            )
    return None


counts_uploads = counts(
    "copied",
    "upload",
    "The next value is self.copied.last_submitted + 1, and there is one signal after all copies of an upload.",
)


def arrives_whole(evidence: Evidence) -> Fault | None:
    """What the direct queue reads after each upload is the layer's weights, every tensor of them."""
    script: LayerScript = evidence.case
    weights = script.weights()
    arrived = [raw for record, raw in evidence.replay().reads if record.src.buffer == "arrived.out"]
    if len(arrived) != script.steps:
        return Fault(
            "incomplete", "The run is not complete.", f"{script.steps} layers read back", f"{len(arrived)}", show=False
        )
    for step, ((layer, slot), raw) in enumerate(zip(script.order, arrived, strict=True)):
        start = 0
        for group in script.layout.groups:
            for place in group.tensors:
                got = raw[start + place.offset : start + place.offset + place.nbytes]
                if not got.equal(weights.bytes(tensor_name(layer, place.name))):
                    return Fault(
                        "bytes",
                        f"Upload {step} does not bring layer {layer} into slot {slot}.",
                        expected=f"{place.nbytes} bytes of {tensor_name(layer, place.name)} "
                        f"in slot[{slot}].{group.name} from {place.offset} on",
                        got=_whose(script, weights, got),
                        records=_reads(evidence)[step][:1],  # type: ignore[arg-type]
                    )
            start += group.nbytes
    return None


def _whose(script: LayerScript, weights: SyntheticWeights, got: torch.Tensor) -> str:
    """What ``got`` is, as far as it can be told."""
    if got.eq(255).all():
        return "bytes that nobody has written (NaN in every float type)"
    for layer in range(script.model.layers):
        for group in script.layout.groups:
            for place in group.tensors:
                held = weights.bytes(tensor_name(layer, place.name))
                known = min(held.numel(), got.numel())
                if known > 1 and got[:known].equal(held[:known]) and len(set(held[:known].tolist())) > 2:
                    return f"other bytes: those of {tensor_name(layer, place.name)}" + (
                        ", as far as they go" if held.numel() != got.numel() else ""
                    )
    return "other bytes"


def fills_every_buffer(evidence: Evidence) -> Fault | None:
    """Each upload copies into all buffers of its slot."""
    script: LayerScript = evidence.case
    uploads = [call for call in evidence.calls if call.name == "upload"]
    for number, (call, (layer, slot)) in enumerate(zip(uploads, script.order, strict=False)):
        filled = {copy.dst.buffer for index, copy in _uploads(evidence) if call.begin <= index < call.end}
        missing = [f"slot[{slot}].{group.name}" for group in script.layout.groups]
        missing = [buffer for buffer in missing if buffer not in filled]
        if missing:
            before = [index for index, _ in _uploads(evidence) if index < call.end][-1:]
            return Fault(
                "not-filled",
                f"Upload {number} does not bring layer {layer} into slot {slot}: no copy into {' and '.join(missing)}.",
                expected="a copy into each of the slot's buffers, in every upload, whatever the slot holds",
                got=f"copies into {', '.join(sorted(filled)) or 'none of them'}",
                records=tuple(before),
                hint="One copy for each group, and none is left out because an earlier upload brought the same layer.",
                show=False,
            )
    return None


def one_copy_for_each_group(evidence: Evidence) -> Fault | None:
    """Two copies a layer, not one for every tensor."""
    groups = len(evidence.case.layout.groups)
    copies = _uploads(evidence)
    if len(copies) <= groups * evidence.steps:
        return None
    return Fault(
        "tiny-copies",
        "Each layer is moved in more copies than it has buffers.",
        expected=f"{groups} copies a layer, one for each group",
        got=f"{len(copies)} copies for {evidence.steps} layers, {len(copies) / evidence.steps:g} a layer",
        records=(copies[0][0],),
        hint="Stage all tensors of a group first, then copy the group with one copy: every copy pays the latency.",
    )


def holds_nobody_back(evidence: Evidence) -> Fault | None:
    """Nothing orders an upload against the reading of the one before: both queues are at work."""
    reads = _reads(evidence)
    fills = [index for index, _ in _uploads(evidence)]
    for step in range(evidence.steps - 1):
        following = [fill for fill in fills if reads[step] and fill < reads[step][0]][-2:]
        for fill in following:
            if not evidence.ordering.concurrent(fill, reads[step][0]):
                waits = [i for i in range(reads[step][0]) if isinstance(evidence.stream[i], Wait | HostWait)][-1:]
                return Fault(
                    "no-overlap",
                    f"The reading of upload {step} is held back until upload {step + 1} has arrived.",
                    expected="upload only submits: whoever needs the layer waits for its value, and for no later one",
                    got="a wait puts one after the other",
                    records=(*waits, fill, reads[step][0]),
                    hint="Let upload wait for nothing; return the value, and the caller waits.",
                )
    return None


def _signal_before_copy(evidence: Evidence, fault: Fault) -> bool:
    fills = [index for index, _ in _uploads(evidence)]
    signals = [
        i
        for i, r in enumerate(evidence.stream)
        if isinstance(r, Signal) and r.fence.startswith("copied") and r.queue == "copy"
    ]
    return (
        race("read-after-write", evidence, fault)
        and bool(fills and signals)
        and signals[0] < fills[1 if len(fills) > 1 else 0]
    )


def _from_one_place(evidence: Evidence, fault: Fault) -> bool:
    staged = [r.dst.offset for r in evidence.stream if isinstance(r, HostWrite) and r.dst.buffer.startswith("staging")]
    return race("host-write", evidence, fault) and staged.count(0) > len(staged) / 16 and staged[12:24] == staged[:12]


def in_the_ring(evidence: Evidence, fault: Fault) -> bool:
    """Whether the fault is a wait of the host within the ring's ``allocate``."""
    return (
        fault.kind in ("host-waits", "waits-too-long")
        and bool(fault.records)
        and in_a_call(evidence, "allocate", fault.records[0])
    )


def _told_too_late(evidence: Evidence) -> bool:
    """Whether a retire was told a value beyond its own upload's."""
    told = [call.values[0] for call in evidence.calls if call.name == "retire" and call.values]
    return any(isinstance(value, int) and value > number for number, value in enumerate(told, 1))


def _after_the_copy(evidence: Evidence, fault: Fault) -> bool:
    if not race("host-write", evidence, fault):
        return False
    write, copy = fault.records
    return not any(isinstance(evidence.stream[i], Signal) for i in range(copy, write))


UPLOAD_IDEAS = (
    *FENCE_IDEAS,
    Named(
        "The signal comes before the copy",
        "A signal says: everything submitted to this queue before it is done. What is submitted after it may still "
        "be on its way.",
        _signal_before_copy,
    ),
    Named(
        "The value from before the signal",
        "The value that upload returns has to be the one that is signalled after this upload's copies. The one "
        "before says only that "
        "the upload before has arrived.",
        lambda evidence, fault: race("read-after-write", evidence, fault),
    ),
    Named(
        "The host changes what it has just submitted",
        "A copy takes the bytes that are there when it runs, not those that were there when it was submitted. Leave "
        "them alone until "
        "its fence says so.",
        _after_the_copy,
    ),
    Named(
        "Staging memory is used again at once",
        "The copy of the layer before may still read there. Ask the ring for room: it hands out what is free, and "
        "waits if it must.",
        _from_one_place,
    ),
    Named(
        "The ring is told the wrong value",
        "retire takes the value that is signalled after the copies from these ranges. With a smaller one the ring "
        "gives them away too early.",
        lambda evidence, fault: race("host-write", evidence, fault),
    ),
    Named(
        "The ring is never told",
        "A range is free again only if retire says after which fence value. Tell the ring once for each upload, "
        "after the signal.",
        lambda evidence, fault: (
            fault.kind == "raised:RuntimeError"
            and "ring" in fault.got
            and not any(call.name == "retire" for call in evidence.calls)
        ),
    ),
    Named(
        "Not the tensor's name in the checkpoint",
        "place.name is a tensor's name within a layer; tensor_name(layer, place.name) is its name in the checkpoint.",
        lambda evidence, fault: fault.kind == "raised:StreamError" and "no source" in fault.got,
        instead_of_hint=True,
    ),
    Named(
        "The ring is told too late a value",
        "The ring waits for what it was told. retire takes the value that was signalled for these ranges, and no later "
        "one.",
        lambda evidence, fault: in_the_ring(evidence, fault) and _told_too_late(evidence),
    ),
    Named(
        "The ring is not asked",
        "The ring knows which bytes are free, and waits where it must. An engine that does its own reckoning goes "
        "wrong with another ring.",
        lambda evidence, fault: fault.kind == "not-handed-out",
    ),
    Named(
        "The host waits beside the ring",
        "The ring waits by itself when it has no room, and for no more than the room needs. Nobody else has to.",
        lambda evidence, fault: fault.kind == "host-waits-outside",
    ),
    Named(
        "The host waits for its own upload",
        "The bytes arrive, but while the host blocks it can submit nothing. Return the value; a queue will wait for "
        "it.",
        lambda evidence, fault: fault.kind in ("host-waits", "waits-too-long") and not in_the_ring(evidence, fault),
    ),
    Named(
        "Copies of tiny tensors",
        "A copy of 512 bytes takes as long as one of 500,000 on a real link, nearly all of it latency.",
        lambda evidence, fault: fault.kind == "tiny-copies",
    ),
    Named(
        "Everybody waits for everything",
        "A wait inside upload puts in order what could happen at the same time. Whoever needs the layer waits.",
        lambda evidence, fault: fault.kind in ("no-overlap", "queue-waits"),
    ),
)

UPLOAD_BLAME = {
    "hazard:read-after-write": "upload",
    "hazard:host-write": "upload",
    "bytes": "upload",
    "incomplete": "upload",
    "raised:": "upload",
    "no-overlap": "upload",
    "number": "upload",
    "waits-too-long": "upload",
    "host-waits": "upload",
    "not-filled": "upload",
    "not-handed-out": "upload",
}


UPLOAD_RULES = {
    "queue": "copy_queue",
    "hazard:read-after-write": "signal_behind",
    "hazard:host-write": "told",
    "hazard:wrong-signaller": "copy_queue",
    "hazard:self-wait": "no_queue_waits",
    "not-filled": "every_buffer",
    "number": "counts",
    "raised:FenceError": "counts",
    "extra-signal": "one_signal",
    "pinned": "pins",
    "not-handed-out": "handed_out",
    "bytes": "whole",
    "raised:StreamError": "whole",
    "raised:TypeError": "returns",
    "raised:RuntimeError": "told",
    "raised:EarlyWait": "signal_behind",
}
ASYNC_RULES = {
    "host-waits": "no_wait",
    "waits-too-long": "no_wait",
    "host-sleeps": "no_wait",
    "no-overlap": "no_queue_waits",
    "queue-waits": "no_queue_waits",
    "tiny-copies": "one_copy",
}


def _engine(passed: str, named: Mapping[str, str], *asked: rules.Rule) -> ProgramJudge:
    return ProgramJudge(asked, passed, UPLOAD_IDEAS, UPLOAD_BLAME, LayerScript.of, (rules.no_hazard,), named)


def _ring_of_layers(evidence: Evidence) -> int:
    script: LayerScript = evidence.case
    return DEPTH * script.layout.nbytes


UPLOAD = _engine(
    "Every layer arrives whole, and the value that upload returns says when.",
    UPLOAD_RULES,
    on_the_copy_queue,
    rules.no_hazard,
    fills_every_buffer,
    counts_uploads,
    signals_only("upload", "copied"),
    pins(_ring_of_layers),
    asks_the_ring,
    arrives_whole,
)
UPLOAD_ASYNC = _engine(
    "upload submits and goes on: two copies a layer, and nobody waits who need not.",
    ASYNC_RULES,
    rules.no_hazard,
    fills_every_buffer,
    waits_for_room_only,
    asks_the_ring,
    host_waits_in_the_ring_only,
    one_copy_for_each_group,
    holds_nobody_back,
    makes_wait_only("upload", frozenset(), "Let upload wait for nothing; return the value, and the caller waits."),
    arrives_whole,
)
