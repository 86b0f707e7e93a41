"""Lab 6: the race. A plan is right when the real executors run with it, and good by how near it comes to the bound."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from functools import cache

from xinfer_lab.device.records import RECORD_TYPES
from xinfer_lab.grading.programs.evidence import Evidence
from xinfer_lab.grading.programs.verify_program import Named, ProgramJudge
from xinfer_lab.labs.lab6.judge.kept import decided
from xinfer_lab.labs.lab6.judge.race_case import AskedCase, RaceCase, read_case
from xinfer_lab.labs.lab6.judge.race_rules import RIGHT, reaches, score_of
from xinfer_lab.labs.lab6.race_line import RaceLine

__all__ = ["BEAT", "GATE", "line_of"]


def _named(name: str, explanation: str, *kinds: str, instead_of_hint: bool = False) -> Named:
    return Named(name, explanation, lambda evidence, fault: fault.kind in kinds, instead_of_hint)


_NAMED = (
    _named(
        "Staged where pinned memory would do",
        "The host then copies every byte once more, and it is slower than the link.",
        "slow:tier",
    ),
    _named(
        "Coded where it does not pay",
        "Decoding takes the GPU's time in every pass, and the link was not what binds here. Compare the bounds of both "
        "forms.",
        "slow:coded",
    ),
    _named(
        "Plain where the coded form would pay",
        "The link binds, and coded layers are a quarter smaller: more of them stay, and the others move fewer bytes.",
        "slow:plain",
    ),
    _named(
        "More slots than two",
        "A slot more is a layer less that stays, and that layer crosses the link in every pass.",
        "slow:slots",
    ),
    _named(
        "Layers stream that could stay",
        "The budget has room for more resident layers: each that stays never crosses the link.",
        "slow:stay",
    ),
    _named(
        "One slot",
        "One slot cannot be filled while it is read: copying, link and computing take turns.",
        "slow:one-slot",
    ),
    _named(
        "Streamed layers in a row",
        "While the layers that stay are computed, the slots are full and the link stands still: spread the others.",
        "slow:spread",
    ),
    _named(
        "The plan is larger than the budget",
        "Count what is always there in this form, the layers that stay, and the slots.",
        "raised:OutOfDeviceMemory",
        "over-budget",
        instead_of_hint=True,
    ),
    _named(
        "A pinned copy that does not fit",
        'A pinned copy takes every layer that streams, a staging ring only needs["ring"] of them.',
        "pinned",
        instead_of_hint=True,
    ),
)


def _run(found: Sequence[Evidence]) -> list[Evidence]:
    return [evidence for evidence in found if isinstance(evidence.case, RaceCase)]


def _on_paper(found: Sequence[Evidence]) -> list[Evidence]:
    return [evidence for evidence in found if isinstance(evidence.case, AskedCase) and evidence.case.is_uneven]


def line_of(found: Sequence[Evidence], scores: Sequence[float]) -> RaceLine:
    """The line of a race: the geometric mean of the ``scores`` of its cases, and a digest of what had them."""
    digest = hashlib.sha256()
    for evidence in found:
        digest.update(_canonical(evidence).encode())
    score = math.prod(scores) ** (1 / len(scores))
    return RaceLine(_run(found)[0].case.drawn_from, round(score, 4), digest.hexdigest()[:16])


def _canonical(evidence: Evidence) -> str:
    """What was asked of the device, without source lines and without what the host read: the same on every machine."""
    kept = [evidence.case.told]
    if isinstance(evidence.case, AskedCase):
        kept.append(str(decided(evidence)))
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
    run, paper = _run(found), _on_paper(found)
    scores = {evidence.case: score_of(evidence) for evidence in (*run, *paper)}
    troubles = "; ".join(f"{one.case.needs['uneven']['trouble']} {scores[one.case]:.2f}" for one in paper)
    return (
        "Within budget, no hazard, streaming vs resident max abs diff = 0.\n"
        f"{_told_scores([scores[one.case] for one in run])}\nOn paper: {troubles}.\n"
        f"{line_of([*run, *paper], list(scores.values()))}"
    )


GATE = ProgramJudge(
    RIGHT,
    _passed,
    _NAMED,
    case=read_case,
    named={
        "over-budget": "budget",
        "raised:OutOfDeviceMemory": "budget",
        "pinned": "pinned",
        "raised:NoPlan": "plan",
        "raised:ChangedNeeds": "keeps_inputs",
    },
)

BEAT = {
    percent: ProgramJudge(
        (*RIGHT, reaches(percent / 100)),
        lambda found: _told_scores([score_of(evidence) for evidence in _run(found)]),
        _NAMED,
        case=read_case,
        named={
            "slow:one-slot": "two_slots",
            "slow:slots": "two_slots",
            "slow:stay": "stay",
            "slow:tier": "tier",
            "slow:coded": "form",
            "slow:plain": "form",
            "slow:spread": "spread",
        },
    )
    for percent in (40, 70, 90)
}
