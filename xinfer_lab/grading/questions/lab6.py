"""The pieces of Lab 6, beat the link."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, cast

from xinfer_lab.device.device import Device
from xinfer_lab.grading.piece import Case, Observed, Piece, Question
from xinfer_lab.grading.programs.record import Program
from xinfer_lab.grading.questions import lab6_cases as cases
from xinfer_lab.grading.values import Value

__all__ = ["PIECES", "plan_of"]

PLANNER = "xinfer_lab.residency.plan"
ANSWERS = (
    PLANNER,
    "xinfer_lab.residency.planned",
    "xinfer_lab.residency.codec.decode",
    "xinfer_lab.residency.codec.encode",
    "xinfer_lab.residency.codec.packing",
    "xinfer_lab.residency.codec.triton_decode",
)

Inputs = Mapping[str, Value]


def _arguments(*names: str) -> Callable[[Any, Inputs, Observed], object]:
    def ask(answer: Any, inputs: Inputs, observed: Observed) -> object:
        return answer(*(inputs[name] for name in names))

    return ask


def _itself(answer: Any, inputs: Inputs, observed: Observed) -> object:
    return answer


def _encoded(answer: Any, inputs: Inputs, observed: Observed) -> object:
    import torch

    patterns = torch.frombuffer(bytearray(inputs["bits"]), dtype=torch.int16)
    return answer(patterns.to(torch.int32) & 0xFFFF)


def _decoded(answer: Any, inputs: Inputs, observed: Observed) -> object:
    """The patterns as bytes, so that a recording stays small; what is no tensor of them stays as it is."""
    import torch

    bits = answer(dict(inputs["coded"]))
    if not isinstance(bits, torch.Tensor):
        return bits
    if bits.dim() != 1 or bits.is_floating_point() or bits.dtype == torch.bool:
        return {"shape": list(bits.shape), "dtype": str(bits.dtype)}
    whole = bits.to(torch.int64)
    if whole.numel() and not 0 <= int(whole.min()) <= int(whole.max()) <= 0xFFFF:
        # int16 has the upper half of the patterns below zero: the same bits, and nothing else may be out of range.
        return {"least": int(whole.min()), "most": int(whole.max())}
    return (whole & 0xFFFF).to(torch.int32).to(torch.int16).numpy().tobytes()


def _once(**inputs: Value) -> Callable[[Random], list[Case]]:
    return lambda random: [Case("your prediction" if "derived" not in inputs else "your figures", inputs)]


FORM = (
    'plan returns {"form": one of needs["forms"], "streamed": growing layer numbers, "slots": a whole number, '
    '"host": "pinned" or "staged"}'
)


def plan_of(decision: object, needs: Inputs) -> tuple[Any, str]:
    """A student's decision as the executors take it, and its host tier. Raises ValueError for what is no plan."""
    from xinfer_lab.grading.programs.planned_case import CODEC, KeptPlan

    if decision is None:
        raise ValueError(f"plan returned nothing; {FORM}")
    if not isinstance(decision, Mapping) or set(decision) != {"form", "streamed", "slots", "host"}:
        raise ValueError(f"{FORM}; it returned {decision!r}"[:400])
    form, streamed, slots, host = (decision[key] for key in ("form", "streamed", "slots", "host"))
    layers = needs["layers"]
    if form not in needs["forms"]:
        raise ValueError(f"the form {form!r} is not one of {', '.join(needs['forms'])}")
    if host not in ("pinned", "staged"):
        raise ValueError(f'the host tier is "pinned" or "staged", not {host!r}')
    if not isinstance(streamed, Sequence) or not all(type(layer) is int for layer in streamed):
        raise ValueError(f"streamed is a list of layer numbers, not {streamed!r}"[:400])
    if list(streamed) != sorted(set(streamed)) or not all(0 <= layer < layers for layer in streamed):
        raise ValueError(f"streamed has layers from 0 to {layers - 1}, each once and growing, not {list(streamed)}")
    if type(slots) is not int or (slots < 1 if streamed else slots != 0):
        raise ValueError(f"{len(streamed)} layers stream through {slots!r} slots: at least 1, or 0 where none streams")
    return KeptPlan(layers, tuple(streamed), slots, "none" if form == "plain" else CODEC), host


def _run_plan(answer: Any, inputs: Inputs, open_device: Callable[..., Device]) -> None:
    from xinfer_lab.grading.programs.model_case import run_model
    from xinfer_lab.grading.programs.planned_case import PlannedCase, factory_of

    figures = {name: value for name, value in inputs.items() if name not in ("needs", "draw")}
    case = cast(PlannedCase, PlannedCase.of(figures))
    device = open_device(memory=case.memory)
    plan, host = plan_of(answer(inputs["needs"]), inputs["needs"])
    run_model(case, case.weights(), device, factory_of(plan, host, case))


@dataclass(frozen=True, slots=True)
class Race(Program):
    """A program that is scored. Its cases are those of the race: one seed draws the same ones for each of its pieces,
    and each says from which seed it was drawn.
    """

    def draw(self, seed: int) -> list[Case]:
        """The cases for ``seed``."""
        return [Case(case.label, {**case.inputs, "draw": seed}) for case in _drawn(seed)]


@lru_cache(maxsize=4)
def _drawn(seed: int) -> tuple[Case, ...]:
    """Drawing takes as long as a race: the figures of each case are measured on a device of sizes."""
    return tuple(cases.gate_cases(Random(f"lab6.race {seed}")))


def _question(name: str, points: int, drawn: Any, ask: Any) -> Question:
    return Question(f"lab6.{name}", points, drawn, ask, ANSWERS)


def _race(name: str, points: int) -> Race:
    return Race(f"lab6.{name}", points, cases.gate_cases, _run_plan, (PLANNER,), cpu_seconds=10.0)


SHARES = {"derived": ["faster", "overlap_at_most", "left_at_least", "activity"]}
CLAIMS = {"derived": ["page_us", "tier_ratio", "stall_hidden_ms", "tokens_for_150_ms"]}

PIECES: tuple[Piece, ...] = (
    _question("predict_claim", 1, _once(low=0, high=100), _itself),
    _question("explain_claim", 2, _once(**SHARES), _itself),
    _question("bound", 3, cases.bound_cases, _arguments("resident", "moved", "link", "memcpy")),
    _question("predict_lru", 1, _once(low=0, high=28), _itself),
    _question("victim", 2, cases.victim_cases, _arguments("held", "layer", "layers")),
    _question("spread", 3, cases.spread_cases, _arguments("layers", "streamed")),
    _question("fit", 3, cases.fit_cases, _arguments("budget", "always", "layers", "layer_bytes")),
    _race("gate", 3),
    _race("beat_40", 2),
    _race("beat_70", 2),
    _race("beat_90", 2),
    _question("predict_bits", 1, _once(low=0, high=8), _itself),
    _question("encode", 2, cases.encode_cases(False), _encoded),
    _question("encode_escapes", 2, cases.encode_cases(True), _encoded),
    _question("decode", 2, cases.decode_cases(False), _decoded),
    _question("decode_escapes", 2, cases.decode_cases(True), _decoded),
    _question("predict_claims", 1, _once(choices=["A", "B", "C", "D"]), _itself),
    _question("explain_claims", 2, _once(**CLAIMS), _itself),
)
"""In the notebook's order."""
