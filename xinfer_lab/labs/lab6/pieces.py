"""The pieces of Lab 6, beat the link."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, cast

from xinfer_lab.device.device import Device
from xinfer_lab.grading.asking import arguments, itself, once
from xinfer_lab.grading.numbers import whole
from xinfer_lab.grading.piece import CHANGED, Case, Observed, Piece
from xinfer_lab.grading.programs.calls import noted
from xinfer_lab.grading.programs.record_program import ProgramPiece
from xinfer_lab.grading.question import Question
from xinfer_lab.grading.values import Value
from xinfer_lab.labs.lab6 import cases

__all__ = ["PIECES", "plan_of"]

PLANNER = "xinfer_lab.residency.plan"
BELADY = ("xinfer_lab.paging.belady", "xinfer_lab.paging.policy", "xinfer_lab.labs.lab5")
ANSWERS = (
    PLANNER,
    "xinfer_lab.residency.planned",
    "xinfer_lab.residency.codec.decode",
    "xinfer_lab.residency.codec.encode",
    "xinfer_lab.residency.codec.packing",
    "xinfer_lab.residency.codec.triton_decode",
    *BELADY,
)

Inputs = Mapping[str, Value]


def _encoded(answer: Any, inputs: Inputs, observed: Observed) -> object:
    import torch

    patterns = torch.frombuffer(bytearray(inputs["bits"]), dtype=torch.int16).to(torch.int32) & 0xFFFF
    given = patterns.clone()
    try:
        return answer(patterns)
    finally:
        if patterns.shape != given.shape or not bool((patterns == given).all()):
            observed[CHANGED] = ["bits"]


def _decoded(answer: Any, inputs: Inputs, observed: Observed) -> object:
    """The patterns as bytes, so that a recording stays small; what is no tensor of them is told from that."""
    import torch

    bits = answer(inputs["coded"])
    if not isinstance(bits, torch.Tensor):
        return bits if bits is None else {"other": bits}
    if bits.dim() != 1 or bits.is_floating_point() or bits.dtype == torch.bool:
        return {"shape": list(bits.shape), "dtype": str(bits.dtype)}
    whole = bits.to(torch.int64)
    if whole.numel() and not 0 <= int(whole.min()) <= int(whole.max()) <= 0xFFFF:
        # int16 has the upper half of the patterns below zero: the same bits, and nothing else may be out of range.
        return {"least": int(whole.min()), "most": int(whole.max())}
    return (whole & 0xFFFF).to(torch.int32).to(torch.int16).numpy().tobytes()


FORM = (
    'plan returns {"form": one of needs["forms"], "streamed": growing layer numbers, "slots": a whole number, '
    '"host": "pinned" or "staged"}'
)


class NoPlan(ValueError):
    """What a plan function returned is no plan."""


class ChangedNeeds(ValueError):
    """A plan function wrote into what it was given."""


def plan_of(decision: object, needs: Inputs) -> tuple[Any, str]:
    """A student's decision as the executors take it, and its host tier. Raises `NoPlan`."""
    from xinfer_lab.labs.lab6.planned_case import CODEC, KeptPlan

    if decision is None:
        raise NoPlan(f"plan returned nothing; {FORM}")
    if not isinstance(decision, Mapping) or set(decision) != {"form", "streamed", "slots", "host"}:
        raise NoPlan(f"{FORM}; it returned {decision!r}"[:400])
    form, streamed, slots, host = (decision[key] for key in ("form", "streamed", "slots", "host"))
    layers = needs["layers"]
    if not isinstance(form, str) or form not in needs["forms"]:
        raise NoPlan(f"the form {form!r} is not one of {', '.join(needs['forms'])}"[:400])
    if host not in ("pinned", "staged"):
        raise NoPlan(f'the host tier is "pinned" or "staged", not {host!r}')
    read = [whole(layer) for layer in streamed] if _listed(streamed) else [None]
    numbers = [number for number in read if number is not None]
    if len(numbers) < len(read):
        raise NoPlan(f"streamed is a list of layer numbers, not {streamed!r}"[:400])
    if numbers != sorted(set(numbers)) or not all(0 <= layer < layers for layer in numbers):
        raise NoPlan(f"streamed has layers from 0 to {layers - 1}, each once and growing, not {numbers}"[:400])
    count = whole(slots)
    if count is None:
        raise NoPlan(f"slots is a whole number, not {slots!r}"[:400])
    if count < 1 if numbers else count != 0:
        raise NoPlan(f"{len(numbers)} layers stream through {count} slots: at least 1, or 0 where none streams")
    return KeptPlan(layers, tuple(numbers), count, "none" if form == "plain" else CODEC), host


def _listed(streamed: object) -> bool:
    """Whether it is a list, of whichever library: text, a dict and a set are none."""
    return isinstance(streamed, Sequence | Iterable) and not isinstance(streamed, str | bytes | Mapping | Set)


def _run_plan(answer: Any, inputs: Inputs, open_device: Callable[..., Device]) -> None:
    from xinfer_lab.grading.programs.model_case import run_model
    from xinfer_lab.labs.lab6.planned_case import PlannedCase, factory_of

    figures = {name: value for name, value in inputs.items() if name not in ("needs", "draw")}
    if not figures:
        _note_plan(answer, inputs["needs"], open_device())
        return
    case = cast(PlannedCase, PlannedCase.of(figures))
    device = open_device(memory=case.memory)
    plan, host = _asked(answer, inputs["needs"])
    run_model(case, case.weights(), device, factory_of(plan, host, case))


def _note_plan(answer: Any, needs: Inputs, device: Device) -> None:
    """Note what is decided for needs that no model belongs to."""
    with noted(device, "plan") as values:
        plan, host = _asked(answer, needs)
        form = "plain" if plan.compress == "none" else "coded"
        values += [form, host, plan.slots, *plan.streamed]
    device.close()


def _asked(answer: Any, needs: Inputs) -> tuple[Any, str]:
    given = deepcopy(dict(needs))
    decision = answer(needs)
    if needs != given:
        raise ChangedNeeds("plan overwrites needs: leave them as they are, and work on copies")
    return plan_of(decision, given)


@dataclass(frozen=True, slots=True)
class Race(ProgramPiece):
    """A program that is scored. Its cases are those of the race: one seed draws the same ones for each of its pieces,
    and each says from which seed it was drawn.
    """

    def draw(self, seed: int) -> list[Case]:
        """The cases for ``seed``."""
        return [Case(case.label, {**case.inputs, "draw": seed}) for case in _drawn(seed)]


@lru_cache(maxsize=4)
def _drawn(seed: int) -> tuple[Case, ...]:
    """Drawing takes as long as a race: the figures of each case are measured on a device of sizes."""
    # Imported here: where an answer is recorded nothing is there that knows which plan is good.
    from xinfer_lab.labs.lab6.judge.needs_draw import asked_needs
    from xinfer_lab.labs.lab6.judge.uneven import uneven_needs

    random = Random(f"lab6.race {seed}")
    return (*cases.gate_cases(random), *asked_needs(random), *uneven_needs(random))


def _question(name: str, points: int, drawn: Any, ask: Any) -> Question:
    return Question(f"lab6.{name}", points, drawn, ask, ANSWERS)


def _race(name: str, points: int) -> Race:
    return Race(f"lab6.{name}", points, cases.gate_cases, _run_plan, (PLANNER,), cpu_seconds=10.0)


SHARES = {"derived": ["faster", "overlap_at_most", "left_at_least", "activity"]}
CLAIMS = {"derived": ["page_us", "tier_ratio", "stall_hidden_ms", "tokens_for_150_ms"]}

PIECES: tuple[Piece, ...] = (
    _question("predict_claim", 1, once(low=0, high=100), itself),
    _question("explain_claim", 2, once(**SHARES), itself),
    _question("bound", 3, cases.bound_cases, arguments("resident", "moved", "link", "memcpy")),
    _question("predict_lru", 1, once(low=0, high=28), itself),
    _question("victim", 2, cases.victim_cases, arguments("held", "layer", "layers")),
    _question("spread", 3, cases.spread_cases, arguments("layers", "streamed")),
    _question("fit", 3, cases.fit_cases, arguments("budget", "always", "layers", "layer_bytes")),
    _race("gate", 3),
    _race("beat_40", 2),
    _race("beat_70", 2),
    _race("beat_90", 2),
    _question("predict_bits", 1, once(low=0, high=8), itself),
    _question("encode", 2, cases.encode_cases(False), _encoded),
    _question("encode_escapes", 2, cases.encode_cases(True), _encoded),
    _question("decode", 2, cases.decode_cases(False), _decoded),
    _question("decode_escapes", 2, cases.decode_cases(True), _decoded),
    _question("predict_claims", 1, once(choices=["A", "B", "C", "D"]), itself),
    _question("explain_claims", 2, once(**CLAIMS), itself),
)
"""In the notebook's order."""
