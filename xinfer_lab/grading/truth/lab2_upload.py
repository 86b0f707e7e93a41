"""Lab 2: the judges of the copy engine, of serial streaming and of the gate, and the wrong ideas behind faults in them."""

from __future__ import annotations

from xinfer_lab.device.records import Copy, HostWait, HostWrite, Signal, Wait
from xinfer_lab.grading.programs import rules
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.grading.programs.staging_rules import pins, waits_for_room_only
from xinfer_lab.grading.programs.verify import Named, ProgramJudge
from xinfer_lab.grading.questions.lab2_layers import DEPTH, LayerScript
from xinfer_lab.grading.truth.lab2_ring import RING_BLAME, RING_MISCONCEPTIONS
from xinfer_lab.qwen2.layout import layer_layout, tensor_name
from xinfer_lab.views.labels import slot_of_buffer

__all__ = ["GATE", "SERIAL", "UPLOAD", "UPLOAD_ASYNC"]


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


def numbered_from_one(evidence: Evidence) -> Fault | None:
    """The fence counts uploads: the k-th one signals k."""
    signals = [(i, r) for i, r in enumerate(evidence.stream) if isinstance(r, Signal) and r.fence.startswith("copied")]
    for number, (index, signal) in enumerate(signals, 1):
        if signal.value != number or number > evidence.steps:
            return Fault(
                "number",
                "The fence does not count the uploads.",
                expected=f"upload number {number} signals {number}" if number <= evidence.steps else "one signal for each upload",
                got=f"{signal.fence} = {signal.value}, as signal number {number}",
                records=(index,),
                hint="The next value is self.copied.last_submitted + 1, and there is one signal after all copies of an upload.",
            )
    return None


def arrives_whole(evidence: Evidence) -> Fault | None:
    """What the direct queue reads after each upload is the layer's weights, every tensor of them."""
    script: LayerScript = evidence.case
    weights = script.weights()
    arrived = [raw for record, raw in evidence.replay().reads if record.src.buffer == "arrived.out"]
    if len(arrived) != script.steps:
        return Fault("incomplete", "The run is not complete.", f"{script.steps} layers read back", f"{len(arrived)}", show=False)
    for step, ((layer, slot), raw) in enumerate(zip(script.order, arrived, strict=True)):
        start = 0
        for group in script.layout.groups:
            for place in group.tensors:
                got = raw[start + place.offset : start + place.offset + place.nbytes]
                if not got.equal(weights.bytes(tensor_name(layer, place.name))):
                    return Fault(
                        "bytes",
                        f"Upload {step} does not bring layer {layer} into slot {slot}.",
                        expected=f"{place.nbytes} bytes of {tensor_name(layer, place.name)} in slot[{slot}].{group.name} from {place.offset} on",
                        got="other bytes" if not got.eq(255).all() else "bytes that nobody has written (NaN in every float type)",
                        records=_reads(evidence)[step][:1],  # type: ignore[arg-type]
                    )
            start += group.nbytes
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
        hint="Stage all tensors of a group first, then copy the group with one copy: every copy pays the link's latency.",
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


def _race(kind: str, evidence: Evidence, fault: Fault) -> bool:
    return fault.kind == f"hazard:{kind}"


def _waits(evidence: Evidence, queue: str, fence: str) -> list[int]:
    records = evidence.stream
    return [r.value for r in records if isinstance(r, Wait) and r.queue == queue and r.fence.startswith(fence)]


def _signal_before_copy(evidence: Evidence, fault: Fault) -> bool:
    fills = [index for index, _ in _uploads(evidence)]
    signals = [i for i, r in enumerate(evidence.stream) if isinstance(r, Signal) and r.fence.startswith("copied") and r.queue == "copy"]
    return _race("read-after-write", evidence, fault) and bool(fills and signals) and signals[0] < fills[1 if len(fills) > 1 else 0]


def _refused(words: str, evidence: Evidence, fault: Fault) -> bool:
    return fault.kind == "raised:FenceError" and words in fault.got


def _from_one_place(evidence: Evidence, fault: Fault) -> bool:
    staged = [r.dst.offset for r in evidence.stream if isinstance(r, HostWrite) and r.dst.buffer.startswith("staging")]
    return _race("host-write", evidence, fault) and staged.count(0) > len(staged) / 16 and staged[12:24] == staged[:12]


def _after_the_copy(evidence: Evidence, fault: Fault) -> bool:
    if not _race("host-write", evidence, fault):
        return False
    write, copy = fault.records
    return not any(isinstance(evidence.stream[i], Signal) for i in range(copy, write))


def _counts_layers(values: list[int], evidence: Evidence) -> bool:
    return len(values) > evidence.case.layers >= max(values) and len(set(values)) > 1


def _signalled_early(evidence: Evidence, fault: Fault) -> bool:
    computes = evidence.program.computes
    if not _race("write-after-read", evidence, fault) or not computes:
        return False
    first = list(evidence.stream)[: computes[0].record]
    return any(isinstance(r, Signal) and r.fence.startswith("consumed") for r in first)


def _own_line(evidence: Evidence, fault: Fault, text: str) -> bool:
    return any(text in evidence.lines.get(evidence.stream[index].where, "") for index in fault.records)


_FENCES = (
    Named(
        "Two queues signal one fence",
        "A fence belongs to one queue: with two signallers, reaching a value would say nothing about either. The queue that did the "
        "work says that it is done.",
        lambda evidence, fault: _refused("belongs to", evidence, fault),
    ),
    Named(
        "A fence value is used twice",
        "Values only grow: a wait could not tell the second 1 from the first. Number the uploads, and the steps, over all passes.",
        lambda evidence, fault: _refused("the next value must be", evidence, fault),
    ),
    Named(
        "The first value is 0",
        "A fence starts at 0, so reaching 0 says nothing. The first thing that is done is number 1.",
        lambda evidence, fault: _refused("starts at 0", evidence, fault),
    ),
    Named(
        "Wait before signal",
        "A wait names a value that was submitted before it. The signal comes first in the program, then what waits for it.",
        lambda evidence, fault: fault.kind == "raised:EarlyWait",
    ),
    Named(
        "The wrong queue waits",
        "A wait holds back the queue that it is given to. A queue that waits for its own signal waits for nothing: it works in order anyway.",
        lambda evidence, fault: _race("self-wait", evidence, fault),
    ),
)

_UPLOAD_IDEAS = (
    *_FENCES,
    Named(
        "The signal comes before the copy",
        "A signal says: everything submitted to this queue before it is done. What is submitted after it may still be on its way.",
        _signal_before_copy,
    ),
    Named(
        "The value from before the signal",
        "The value that upload returns has to be the one that is signalled after this upload's copies. The one before says only that "
        "the upload before has arrived.",
        lambda evidence, fault: _race("read-after-write", evidence, fault),
    ),
    Named(
        "The host changes what it has just submitted",
        "A copy takes the bytes that are there when it runs, not those that were there when it was submitted. Leave them alone until "
        "its fence says so.",
        _after_the_copy,
    ),
    Named(
        "Staging memory is used again at once",
        "The copy of the layer before may still read there. Ask the ring for room: it hands out what is free, and waits if it must.",
        _from_one_place,
    ),
    Named(
        "The ring is told the wrong value",
        "retire takes the value that is signalled after the copies from these ranges. With a smaller one the ring gives them away too early.",
        lambda evidence, fault: _race("host-write", evidence, fault),
    ),
    Named(
        "The ring is never told",
        "A range is free again only if retire says after which fence value. Tell the ring once for each upload, after the signal.",
        lambda evidence, fault: fault.kind == "raised:RuntimeError" and "ring" in fault.got,
    ),
    Named(
        "The host waits for its own upload",
        "The bytes arrive, but while the host blocks it can submit nothing. Return the value; a queue will wait for it.",
        lambda evidence, fault: fault.kind in ("host-waits", "waits-too-long"),
    ),
    Named(
        "Copies of tiny tensors",
        "A copy of 512 bytes takes as long as one of 500,000 on a real link, nearly all of it latency.",
        lambda evidence, fault: fault.kind == "tiny-copies",
    ),
    Named(
        "Everybody waits for everything",
        "The bytes are right, but a wait inside upload puts in order what could happen at the same time.",
        lambda evidence, fault: fault.kind == "no-overlap",
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
}


def _engine(passed: str, *asked: rules.Rule) -> ProgramJudge:
    return ProgramJudge(asked, passed, _UPLOAD_IDEAS, UPLOAD_BLAME, LayerScript.of, (rules.no_hazard,))


def _ring_of_layers(evidence: Evidence) -> int:
    return DEPTH * evidence.case.layout.nbytes


UPLOAD = _engine(
    "Every layer arrives whole, and the value that upload returns says when.",
    on_the_copy_queue,
    rules.no_hazard,
    numbered_from_one,
    pins(_ring_of_layers),
    arrives_whole,
)
UPLOAD_ASYNC = _engine(
    "upload submits and goes on: two copies a layer, and nobody waits who need not.",
    rules.no_hazard,
    waits_for_room_only,
    one_copy_for_each_group,
    holds_nobody_back,
    arrives_whole,
)


_SERIAL_IDEAS = (
    *_FENCES,
    Named(
        "A second slot",
        "There is room for one slot. Refill the one that is there.",
        lambda evidence, fault: fault.kind in ("raised:OutOfDeviceMemory", "over-budget"),
    ),
    Named(
        "The signal comes before the read",
        "A signal says: everything submitted to this queue so far is done. ensure is called before the layer's computing is "
        "submitted, release after it.",
        _signalled_early,
    ),
    Named(
        "Counts layers, not steps",
        "In the second pass the fence is past every layer number already, so such a wait waits for nothing. Count over all passes.",
        lambda evidence, fault: (
            _race("write-after-read", evidence, fault) and _counts_layers(_waits(evidence, "copy", "consumed"), evidence)
        ),
    ),
    Named(
        "Nobody waits for the copy",
        "Submitted is not arrived. The direct queue starts a kernel as soon as it can, whatever the copy queue is at.",
        lambda evidence, fault: _race("read-after-write", evidence, fault) and not _waits(evidence, "direct", "copied"),
    ),
    Named(
        "Nobody waits for the reader",
        "release is called when the computing has been submitted, not when it is over. The copy queue has to wait before it overwrites.",
        lambda evidence, fault: _race("write-after-read", evidence, fault) and not _waits(evidence, "copy", "consumed"),
    ),
    Named(
        "The wait is not for this upload",
        "The value that is waited for belongs to an earlier upload. engine.upload returns the right one.",
        lambda evidence, fault: _race("read-after-write", evidence, fault),
    ),
    Named(
        "The wait is too little or too late",
        "Before a layer is uploaded, the layer before it must have been computed: the copy queue waits for that step's value, and "
        "does so before the upload is submitted.",
        lambda evidence, fault: _race("write-after-read", evidence, fault),
    ),
    Named(
        "The layer is not uploaded again",
        "One slot holds one layer: in each pass every layer comes anew, and nothing of the pass before is left.",
        lambda evidence, fault: fault.kind in ("wrong-layer", "not-uploaded"),
    ),
    Named(
        "The host waits in place of a queue",
        "The numbers are right, but while the host blocks it submits nothing. A queue can wait for a queue by itself.",
        lambda evidence, fault: fault.kind in ("host-waits", "waits-too-long"),
    ),
    Named(
        "Uploads that nobody uses",
        "One upload for each step, when its layer is asked for.",
        lambda evidence, fault: fault.kind == "uploaded-twice",
    ),
)

SERIAL_BLAME = {
    "hazard:read-after-write": "ensure",
    "hazard:write-after-read": "ensure",
    "wrong-layer": "ensure",
    "not-uploaded": "ensure",
    "raised:FenceError": "release",
    "raised:": "ensure",
}

_SERIAL_RULES = (
    rules.given_inputs_only,
    rules.right_queues,
    rules.right_layers,
    rules.no_hazard,
    rules.each_step_uploads_once,
    waits_for_room_only,
)


def _two_layers(evidence: Evidence) -> int:
    return DEPTH * layer_layout(evidence.case.config).nbytes


_pins_two_layers = pins(_two_layers, frozenset({"tokens.in"}))

SERIAL = ProgramJudge((*_SERIAL_RULES, rules.parity), "Upload, compute, upload, compute: every step in order, nobody races.", _SERIAL_IDEAS, SERIAL_BLAME)
GATE = ProgramJudge(
    (*_SERIAL_RULES, _pins_two_layers, rules.parity),
    "serial vs resident max abs diff = 0, no hazard, within budget, every layer uploaded by the copy queue.",
    (*_SERIAL_IDEAS, *_UPLOAD_IDEAS, *RING_MISCONCEPTIONS),
    {**RING_BLAME, **SERIAL_BLAME, "hazard:host-write": "allocate"},
)
