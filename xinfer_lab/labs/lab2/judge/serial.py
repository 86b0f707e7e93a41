"""Lab 2: the judges of serial streaming and of the gate, and the wrong ideas behind faults in them."""

from __future__ import annotations

from xinfer_lab.device.records import Signal
from xinfer_lab.grading.programs import run_rules as rules
from xinfer_lab.grading.programs.call_rules import asks_the_ring, host_waits_in_the_ring_only
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.grading.programs.verify_program import Named, ProgramJudge
from xinfer_lab.labs.lab2.judge.fences import FENCE_IDEAS, counts, race, waits
from xinfer_lab.labs.lab2.judge.ring import RING_BLAME, RING_MISCONCEPTIONS
from xinfer_lab.labs.lab2.judge.staging_rules import pins, waits_for_room_only
from xinfer_lab.labs.lab2.judge.upload import UPLOAD_IDEAS, in_the_ring
from xinfer_lab.labs.lab2.layers import DEPTH
from xinfer_lab.qwen2.layout import layer_layout

__all__ = ["GATE", "SERIAL"]

counts_steps = counts(
    "consumed", "step", "self.step is the number of layers computed so far; release counts it up by 1."
)


def _counts_layers(values: list[int], evidence: Evidence) -> bool:
    return len(values) > evidence.case.layers >= max(values) and len(set(values)) > 1


def _signalled_early(evidence: Evidence, fault: Fault) -> bool:
    computes = evidence.program.computes
    if fault.kind == "promised-too-early":
        return any(call.name == "ensure" and call.begin <= fault.records[0] < call.end for call in evidence.calls)
    if not race("write-after-read", evidence, fault) or not computes:
        return False
    first = list(evidence.stream)[: computes[0].record]
    return any(isinstance(r, Signal) and r.fence.startswith("consumed") for r in first)


_SERIAL_IDEAS = (
    *FENCE_IDEAS,
    Named(
        "A second slot",
        "There is room for one slot. Refill the one that is there.",
        lambda evidence, fault: fault.kind in ("raised:OutOfDeviceMemory", "over-budget"),
    ),
    Named(
        "The signal comes before the read",
        "A signal says: everything submitted to this queue so far is done. ensure is called before the layer's "
        "computing is "
        "submitted, release after it.",
        _signalled_early,
    ),
    Named(
        "Counts layers, not steps",
        "In the second pass the fence is past every layer number already, so such a wait waits for nothing. Count "
        "over all passes.",
        lambda evidence, fault: (
            race("write-after-read", evidence, fault) and _counts_layers(waits(evidence, "copy", "consumed"), evidence)
        ),
    ),
    Named(
        "Nobody waits for the copy",
        "Submitted is not arrived. The direct queue starts a kernel as soon as it can, whatever the copy queue is at.",
        lambda evidence, fault: race("read-after-write", evidence, fault) and not waits(evidence, "direct", "copied"),
    ),
    Named(
        "Nobody waits for the reader",
        "release is called when the computing has been submitted, not when it is over. The copy queue has to wait "
        "before it overwrites.",
        lambda evidence, fault: race("write-after-read", evidence, fault) and not waits(evidence, "copy", "consumed"),
    ),
    Named(
        "The wait is not for this upload",
        "The value that is waited for belongs to an earlier upload. engine.upload returns the right one.",
        lambda evidence, fault: race("read-after-write", evidence, fault),
    ),
    Named(
        "The wait is too little or too late",
        "Before a layer is uploaded, the layer before it must have been computed: the copy queue waits for that "
        "step's value, and "
        "does so before the upload is submitted.",
        lambda evidence, fault: race("write-after-read", evidence, fault),
    ),
    Named(
        "The layer is not uploaded again",
        "One slot holds one layer: in each pass every layer comes anew, and nothing of the pass before is left.",
        lambda evidence, fault: fault.kind in ("wrong-layer", "not-uploaded"),
    ),
    Named(
        "The host waits in place of a queue",
        "The numbers are right, but while the host blocks it submits nothing. A queue can wait for a queue by itself.",
        lambda evidence, fault: fault.kind in ("host-waits", "waits-too-long") and not in_the_ring(evidence, fault),
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
    "promised-too-early": "release",
    "raised:FenceError": "release",
    "raised:": "ensure",
}

_SERIAL_RULES = (
    rules.given_inputs_only,
    rules.two_queues_only,
    rules.right_queues,
    rules.right_layers,
    rules.no_hazard,
    rules.each_step_uploads_once,
    waits_for_room_only,
)


def _two_layers(evidence: Evidence) -> int:
    return DEPTH * layer_layout(evidence.case.config).nbytes


_pins_two_layers = pins(_two_layers, frozenset({"tokens.in"}))

SERIAL = ProgramJudge(
    (*_SERIAL_RULES, counts_steps, rules.signals_each_step, _pins_two_layers, rules.parity),
    "Upload, compute, upload, compute: every step in order, nobody races.",
    _SERIAL_IDEAS,
    SERIAL_BLAME,
    named={
        "other-queue": "two_queues",
        "queue": "two_queues",
        "wrong-layer": "every_call",
        "not-uploaded": "every_call",
        "uploaded-twice": "once",
        "hazard:read-after-write": "read_after_write",
        "hazard:write-after-read": "write_after_read",
        "hazard:self-wait": "who_waits",
        "hazard:wrong-signaller": "who_signals",
        "host-waits": "host",
        "waits-too-long": "host",
        "host-sleeps": "host",
        "number": "numbered",
        "raised:FenceError": "numbered",
        "promised-too-early": "behind",
        "never-signalled": "signalled",
        "raised:OutOfDeviceMemory": "one_slot",
        "over-budget": "one_slot",
        "pinned": "pins",
    },
)
GATE = ProgramJudge(
    (
        *_SERIAL_RULES,
        rules.signals_each_step,
        _pins_two_layers,
        asks_the_ring,
        host_waits_in_the_ring_only,
        rules.parity,
    ),
    "serial vs resident max abs diff = 0, no hazard, within budget, every layer uploaded by the copy queue.",
    (*_SERIAL_IDEAS, *UPLOAD_IDEAS, *RING_MISCONCEPTIONS),
    {**RING_BLAME, **SERIAL_BLAME, "hazard:host-write": "allocate"},
)
