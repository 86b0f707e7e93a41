"""Lab 6: the race. A plan is right when the real executors run with it, and good by how near it comes to the bound."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from xinfer_lab.device.device import KERNELS
from xinfer_lab.device.errors import format_bytes
from xinfer_lab.device.gpu_spec import GPU_SPECS, GpuSpec
from xinfer_lab.device.records import RECORD_TYPES, Allocate, Copy, Dispatch, Free, HostRead, HostWrite
from xinfer_lab.device.simulated import SimulatedDevice, simulate
from xinfer_lab.grading.programs import run_rules as rules
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.grading.programs.model_case import run_model
from xinfer_lab.grading.programs.verify_program import Named, ProgramJudge
from xinfer_lab.grading.values import BadData, Value
from xinfer_lab.labs.lab6.judge.bounds import Best, bytes_used, fewest_streamed, pinned_used, plans_of, time_of
from xinfer_lab.labs.lab6.planned_case import PlannedCase, pass_time
from xinfer_lab.labs.lab6.race_line import RaceLine
from xinfer_lab.residency.placeholder import PlaceholderLayers
from xinfer_lab.residency.weights import SizedWeights
from xinfer_lab.views.scale import format_time

__all__ = ["BEAT", "GATE", "Best", "best_of", "line_of", "score_of"]

Inputs = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class RaceCase(PlannedCase):
    """A `PlannedCase`, what its planner was told (as JSON), and the seed that it was drawn from."""

    told: str
    drawn_from: int

    @classmethod
    def read(cls, inputs: Inputs) -> RaceCase:
        """The case that ``inputs`` describe. Raises `BadData`."""
        if not isinstance(inputs.get("needs"), dict) or type(inputs.get("draw")) is not int:
            raise BadData("a case of the race has needs and the seed that it was drawn from")
        figures = {name: value for name, value in inputs.items() if name not in ("needs", "draw")}
        plain = PlannedCase.of(figures)
        return cls(**plain.inputs(), told=json.dumps(inputs["needs"], sort_keys=True), drawn_from=inputs["draw"])

    @property
    def needs(self) -> dict[str, Any]:
        """What its planner was told."""
        told: dict[str, Any] = json.loads(self.told)
        return told


@dataclass(frozen=True, slots=True)
class AskedCase:
    """Needs that a plan is asked for, and no model: nothing is run. (As a `ProgramCase` it is an empty one.)"""

    told: str
    label: str = ""
    memory: int | None = None
    steps: int = 0
    read_backs: tuple[str, ...] = ()

    @property
    def needs(self) -> dict[str, Any]:
        """What its planner is told."""
        told: dict[str, Any] = json.loads(self.told)
        return told

    @property
    def layers(self) -> int:
        """Layers of the model that is not there."""
        layers: int = self.needs["layers"]
        return layers

    def weights(self) -> Any:
        """Nothing: no byte of it is ever asked for."""
        return None

    def spec(self, ratio: float = 1.0) -> GpuSpec:
        """Some GPU."""
        return GPU_SPECS["laptop"]


def read_case(inputs: Inputs) -> RaceCase | AskedCase:
    """The case that ``inputs`` describe. Raises `BadData`."""
    if set(inputs) == {"needs", "draw"} and isinstance(inputs["needs"], dict):
        return AskedCase(json.dumps(inputs["needs"], sort_keys=True))
    return RaceCase.read(inputs)


@lru_cache(maxsize=256)
def _plans(told: str) -> tuple[Best, ...]:
    return plans_of(json.loads(told))


def best_of(case: RaceCase | AskedCase) -> Best:
    """The best of all plans."""
    return min(_plans(case.told), key=lambda best: best.bound)


def _achieved(evidence: Evidence) -> float:
    """Seconds of a steady pass, on the virtual clock. Raises ValueError for an incomplete run."""
    timeline = simulate(evidence.stream, evidence.case.gpu, KERNELS)
    return pass_time(timeline, evidence.stream, evidence.case.steps)


def score_of(evidence: Evidence) -> float:
    """bound / achieved, at most 1."""
    return min(1.0, best_of(evidence.case).bound / _achieved(evidence))


@dataclass(frozen=True, slots=True)
class Kept:
    """What a stream shows of the plan behind it: bytes that a steady pass moves, streamed layers, slots, form, tier,
    and how many layers lie between one streamed layer and the next, at most and at least."""

    moved: float
    streamed: int
    slots: int
    coded: bool
    staged: bool
    uneven: bool


def kept_by(evidence: Evidence) -> Kept:
    """The plan, worked out from the stream alone; where nothing was run, as it was decided."""
    return decided(evidence) if isinstance(evidence.case, AskedCase) else _kept_by(evidence)


def decided(evidence: Evidence) -> Kept:
    """The plan that was returned for an `AskedCase`. Raises ValueError where none was noted."""
    match [call.values for call in evidence.calls]:
        case [("plain" | "coded" as form, "pinned" | "staged" as host, int(slots), *places)]:
            layer = evidence.case.needs["forms"].get(form, {}).get("layer_bytes", 0)
            return Kept(len(places) * layer, len(places), slots, form == "coded", host == "staged", False)
    raise ValueError("no plan was noted")


def _kept_by(evidence: Evidence) -> Kept:
    """The plan, worked out from the stream alone."""
    first, steps = evidence.first_pass, evidence.case.steps
    copies = [
        record
        for index, record in enumerate(evidence.stream)
        if isinstance(record, Copy) and record.queue == "copy" and record.dst.buffer.startswith("slot[")
    ]
    slots = {re.match(r"slot\[(\d+)\]", copy.dst.buffer).group(1) for copy in copies}  # type: ignore[union-attr]
    after = [record for index, record in enumerate(evidence.stream) if index >= first]
    coded = any(isinstance(record, Dispatch) and record.kernel == "decode_exponents" for record in after)
    staged = any(isinstance(r, HostWrite) and r.source.name not in evidence.stream.inputs for r in after)
    places = _streamed_layers(evidence)
    moved = sum(copy.dst.size for copy in copies) / steps
    ahead = [*places[1:], places[0] + evidence.case.layers] if places else []
    gaps = [b - a for a, b in zip(places, ahead, strict=True)]
    return Kept(moved, len(places), len(slots), coded, staged, bool(gaps) and max(gaps) - min(gaps) > 1)


def _streamed_layers(evidence: Evidence) -> list[int]:
    """The layers whose weights, plain or coded, are read out of a slot."""
    layer, found = 0, set()
    for record in evidence.stream:
        if not isinstance(record, Dispatch | Copy):
            continue
        reads = [v.buffer for v in record.operands.values()] if isinstance(record, Dispatch) else [record.src.buffer]
        if getattr(record, "queue", "") == "direct" and any(name.startswith("slot[") for name in reads):
            found.add(layer % evidence.case.layers)
        if isinstance(record, Dispatch) and record.kernel == "decoder_layer":
            layer += 1
    return sorted(found)


def of_a_run(rule: rules.Rule) -> rules.Rule:
    """``rule`` for the cases that are run."""
    return lambda evidence: None if isinstance(evidence.case, AskedCase) else rule(evidence)


def plan_fits(evidence: Evidence) -> Fault | None:
    """Where nothing is run: a plan was decided on, and it fits the budget and the pinned memory."""
    if not isinstance(evidence.case, AskedCase):
        return None
    needs = evidence.case.needs
    try:
        kept = decided(evidence)
    except ValueError:
        return Fault("incomplete", "No plan was recorded for these needs.", show=False)
    form, host = "coded" if kept.coded else "plain", "staged" if kept.staged else "pinned"
    if form not in needs["forms"] or not 0 <= kept.streamed <= needs["layers"]:
        return Fault("incomplete", "The recording is not of what was asked.", show=False)
    used = bytes_used(needs, form, kept.streamed, kept.slots)
    if used > needs["budget"]:
        return Fault(
            "over-budget",
            "The plan takes more device memory than there is.",
            expected=f"at most {format_bytes(needs['budget'])}",
            got=f"{format_bytes(used)}: {_told(kept)}",
            show=False,
        )
    pinned = pinned_used(needs, form, host, kept.streamed)
    if pinned > needs["pinned"]:
        return _pinned(needs["pinned"], pinned)
    return None


def _decided_time(case: AskedCase, kept: Kept) -> float:
    """Seconds of a pass by the plan's own figures. One slot is filled and read in turns."""
    form, host = "coded" if kept.coded else "plain", "staged" if kept.staged else "pinned"
    times = time_of(case.needs, form, host, kept.streamed)
    return sum(times.values()) if kept.slots == 1 else max(times.values())


def complete(evidence: Evidence) -> Fault | None:
    """Every pass computes every layer, and its logits are read."""
    count = sum(isinstance(record, Dispatch) and record.kernel == "decoder_layer" for record in evidence.stream)
    reads = sum(isinstance(record, HostRead) for record in evidence.stream)
    if count == evidence.steps and reads >= evidence.case.steps:
        return None
    return Fault("incomplete", "The run is not complete.", expected=f"{evidence.steps} computed layers", got=f"{count}")


def within_pinned(evidence: Evidence) -> Fault | None:
    """While the passes run, layers occupy no more pinned memory than there is for them."""
    living: dict[str, int] = {}
    most = 0
    for index, record in enumerate(evidence.stream):
        if isinstance(record, Allocate) and record.heap == "upload":
            living[record.buffer] = record.size
        elif isinstance(record, Free):
            living.pop(record.buffer, None)
        if index >= evidence.first_pass:
            most = max(most, sum(living.values()))
    besides = _pinned_besides(evidence.case)
    if most <= evidence.case.pinned + besides:
        return None
    return _pinned(evidence.case.pinned, most - besides)


def _pinned(limit: int, used: int) -> Fault:
    return Fault(
        "pinned",
        "More host memory is pinned than there is.",
        expected=f"at most {format_bytes(limit)} of pinned memory for layers",
        got=format_bytes(used),
        hint='needs["pinned"] is the limit. A staging ring ("staged") takes needs["ring"] layers, a pinned copy all '
        "that stream.",
        show=False,
    )


@lru_cache(maxsize=64)
def _pinned_besides(case: RaceCase) -> int:
    """Bytes of upload heaps that the model itself has while it runs."""
    device = SimulatedDevice(case.gpu, memory=None, check=False)
    run_model(case, SizedWeights(case.config), device, PlaceholderLayers)
    living: dict[str, int] = {}
    running, most = False, 0
    for record in device.stream:
        if isinstance(record, Allocate) and record.heap == "upload":
            living[record.buffer] = record.size
        elif isinstance(record, Free):
            living.pop(record.buffer, None)
        running = running or (isinstance(record, Dispatch) and record.kernel == "embed")
        if running:
            most = max(most, sum(living.values()))
    return most


def reaches(share: float) -> rules.Rule:
    """The rule that a pass takes at most bound / ``share``."""

    def fast_enough(evidence: Evidence) -> Fault | None:
        best, kept = best_of(evidence.case), kept_by(evidence)
        asked = isinstance(evidence.case, AskedCase)
        time = _decided_time(evidence.case, kept) if asked else _achieved(evidence)
        if best.bound / time >= share:
            return None
        return Fault(
            "slow",
            f"A pass takes longer than bound / {share:g}.",
            expected=f"at most {format_time(best.bound / share)}: a plan for this case can come to "
            f"{format_time(best.bound)}, where {_WHAT[best.binds]} binds",
            got=f"{format_time(time)} ({best.bound / time:.2f} of the bound): {_told(kept)}",
            records=(),
            show=not asked,
        )

    return fast_enough


_WHAT = {"computing": "computing", "link": "the link", "memcpy": "the host's copying"}


def _told(kept: Kept) -> str:
    if not kept.streamed:
        return f"all layers stay, {'coded' if kept.coded else 'plain'}"
    form, tier = "coded" if kept.coded else "plain", "staged" if kept.staged else "pinned"
    moved = format_bytes(int(kept.moved))
    return f"{kept.streamed} {form} layers stream through {kept.slots} slots, {tier}, {moved} a pass"


def _slow(test: Callable[[Kept, Best], bool]) -> Callable[[Evidence, Fault], bool]:
    return lambda evidence, fault: fault.kind == "slow" and test(kept_by(evidence), best_of(evidence.case))


def _could_stay(evidence: Evidence, fault: Fault) -> bool:
    if fault.kind != "slow":
        return False
    kept = kept_by(evidence)
    return bool(kept.streamed > fewest_streamed(evidence.case.needs, "coded" if kept.coded else "plain"))


_NAMED = (
    Named(
        "Staged where pinned memory would do",
        "The host then copies every byte once more, and it is slower than the link.",
        _slow(lambda kept, best: kept.staged and best.host == "pinned" and kept.coded == (best.form == "coded")),
    ),
    Named(
        "Coded where it does not pay",
        "Decoding takes the GPU's time in every pass, and the link was not what binds here. Compare the bounds of both "
        "forms.",
        _slow(lambda kept, best: kept.coded and best.form == "plain"),
    ),
    Named(
        "More slots than two",
        "A slot more is a layer less that stays, and that layer crosses the link in every pass.",
        lambda evidence, fault: _could_stay(evidence, fault) and kept_by(evidence).slots > 2,
    ),
    Named(
        "Layers stream that could stay",
        "The budget has room for more resident layers: each that stays never crosses the link.",
        _could_stay,
    ),
    Named(
        "One slot",
        "One slot cannot be filled while it is read: link and computing take turns.",
        _slow(lambda kept, best: kept.slots == 1),
    ),
    Named(
        "Plain where the coded form would pay",
        "The link binds, and coded layers are a quarter smaller: more of them stay, and the others move fewer bytes.",
        _slow(lambda kept, best: not kept.coded and best.form == "coded"),
    ),
    Named(
        "Streamed layers in a row",
        "While the layers that stay are computed, the slots are full and the link stands still: spread the others.",
        _slow(lambda kept, best: kept.uneven),
    ),
    Named(
        "The plan is larger than the budget",
        "Count what is always there in this form, the layers that stay, and the slots.",
        lambda evidence, fault: fault.kind in ("raised:OutOfDeviceMemory", "over-budget"),
        instead_of_hint=True,
    ),
    Named(
        "A pinned copy that does not fit",
        'A pinned copy takes every layer that streams, a staging ring only needs["ring"] of them.',
        lambda evidence, fault: fault.kind == "pinned",
        instead_of_hint=True,
    ),
)

_RIGHT = (
    plan_fits,
    *map(
        of_a_run,
        (
            rules.given_inputs_only,
            complete,
            within_pinned,
            rules.no_hazard,
            rules.no_state_fault,
            rules.parity,
        ),
    ),
)


def _run(found: Sequence[Evidence]) -> list[Evidence]:
    return [evidence for evidence in found if isinstance(evidence.case, RaceCase)]


def line_of(found: Sequence[Evidence], scores: Sequence[float] | None = None) -> RaceLine:
    """The line of a whole race: the geometric mean of its scores, and a digest of the streams that had them."""
    digest = hashlib.sha256()
    for evidence in found:
        digest.update(_canonical(evidence).encode())
    score = math.prod(scores or [score_of(evidence) for evidence in found]) ** (1 / len(found))
    return RaceLine(found[0].case.drawn_from, round(score, 4), digest.hexdigest()[:16])


def _canonical(evidence: Evidence) -> str:
    """What was asked of the device, without source lines and without what the host read: the same on every machine."""
    kept = [evidence.case.told]
    for record in evidence.stream:
        values = (getattr(record, name) for name in _fields(type(record).__name__))
        kept.append(f"{type(record).__name__} {' '.join(map(repr, values))}")
    return "\n".join(kept)


@cache
def _fields(kind: str) -> tuple[str, ...]:
    (found,) = (one for one in RECORD_TYPES.values() if one.__name__ == kind)
    return tuple(field.name for field in dataclasses.fields(found) if field.name not in ("where", "digest"))


def _told_scores(scores: Sequence[float]) -> str:
    return "Bound over time: " + ", ".join(f"{score:.2f}" for score in scores) + "."


def _passed(found: Sequence[Evidence]) -> str:
    scores = [score_of(evidence) for evidence in _run(found)]
    return (
        "Within budget, no hazard, streaming vs resident max abs diff = 0.\n"
        f"{_told_scores(scores)}\n{line_of(_run(found), scores)}"
    )


GATE = ProgramJudge(_RIGHT, _passed, _NAMED, case=read_case)

BEAT = {
    percent: ProgramJudge(
        (*_RIGHT, reaches(percent / 100)),
        lambda found: _told_scores([score_of(evidence) for evidence in _run(found)]),
        _NAMED,
        case=read_case,
    )
    for percent in (40, 70, 90)
}
