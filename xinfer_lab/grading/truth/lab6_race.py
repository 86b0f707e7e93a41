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
from xinfer_lab.device.records import RECORD_TYPES, Allocate, Copy, Dispatch, Free, HostRead, HostWrite
from xinfer_lab.device.simulated import SimulatedDevice, simulate
from xinfer_lab.grading.programs import rules
from xinfer_lab.grading.programs.evidence import Evidence, Fault
from xinfer_lab.grading.programs.model_case import run_model
from xinfer_lab.grading.programs.planned_case import PlannedCase, pass_time
from xinfer_lab.grading.programs.verify import Named, ProgramJudge
from xinfer_lab.grading.race_line import RaceLine
from xinfer_lab.grading.values import BadData, Value
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
class Best:
    """The least time that a plan for a case allows: its ``bound`` in seconds, what ``binds`` it, and how it is had."""

    bound: float
    binds: str
    form: str
    host: str
    streamed: int


@lru_cache(maxsize=64)
def _plans(case: RaceCase) -> tuple[Best, ...]:
    """What each form allows in each host tier, with as few streamed layers as the budget leaves."""
    needs, found = case.needs, []
    for form, figures in needs["forms"].items():
        layer = figures["layer_bytes"]
        computing = needs["t_pass"] + needs["layers"] * figures["t_decode"]
        counts = (
            count
            for count in (0, *range(3, needs["layers"] + 1))
            if figures["always"] + (needs["layers"] - count + 2 * bool(count)) * layer <= needs["budget"]
        )
        # Fewer streamed layers are never slower.
        if (streamed := next(counts, None)) is None:
            continue
        for host in ("pinned", "staged"):
            held = min(streamed, needs["ring"]) if host == "staged" else streamed
            if held * layer > needs["pinned"]:
                continue
            times = {"computing": computing, "link": streamed * layer / needs["link"]}
            if host == "staged":
                times["memcpy"] = streamed * layer / needs["memcpy"]
            binds = max(times, key=lambda name: times[name])
            found.append(Best(times[binds], binds, form, host, streamed))
    return tuple(found)


def best_of(case: RaceCase) -> Best:
    """The best of all plans."""
    return min(_plans(case), key=lambda best: best.bound)


def fewest_streamed(case: RaceCase, form: str) -> int:
    """How many layers have to stream in ``form`` at least; all of them where it does not fit."""
    return min((plan.streamed for plan in _plans(case) if plan.form == form), default=case.layers)


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
    return Fault(
        "pinned",
        "More host memory is pinned than there is.",
        expected=f"at most {format_bytes(evidence.case.pinned)} of pinned memory for layers",
        got=format_bytes(most - besides),
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
        best, time = best_of(evidence.case), _achieved(evidence)
        if best.bound / time >= share:
            return None
        kept = kept_by(evidence)
        return Fault(
            "slow",
            f"A pass takes longer than bound / {share:g}.",
            expected=f"at most {format_time(best.bound / share)}: a plan for this case can come to "
            f"{format_time(best.bound)}, where {_WHAT[best.binds]} binds",
            got=f"{format_time(time)} ({best.bound / time:.2f} of the bound): {_told(kept)}",
            records=(),
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
    return kept.streamed > fewest_streamed(evidence.case, "coded" if kept.coded else "plain")


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
    rules.given_inputs_only,
    complete,
    within_pinned,
    rules.no_hazard,
    rules.no_state_fault,
    rules.parity,
)  # fmt: skip


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
    scores = [score_of(evidence) for evidence in found]
    return (
        "Within budget, no hazard, streaming vs resident max abs diff = 0.\n"
        f"{_told_scores(scores)}\n{line_of(found, scores)}"
    )


GATE = ProgramJudge(_RIGHT, _passed, _NAMED, case=RaceCase.read)

BEAT = {
    percent: ProgramJudge(
        (*_RIGHT, reaches(percent / 100)),
        lambda found: _told_scores([score_of(evidence) for evidence in found]),
        _NAMED,
        case=RaceCase.read,
    )
    for percent in (40, 70, 90)
}
