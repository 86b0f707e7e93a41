"""The pieces of Lab 4, cross-queue state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from xinfer_lab.device.device import Device
from xinfer_lab.grading.piece import Case, Observed, Piece, Question
from xinfer_lab.grading.programs.calls import noted
from xinfer_lab.grading.programs.model_case import ModelCase, run_model
from xinfer_lab.grading.programs.record import Program, Runner
from xinfer_lab.grading.questions import lab4_cases as cases
from xinfer_lab.grading.values import Value
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.host import PinnedLayers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.ring import streaming_from
from xinfer_lab.residency.source import LayerSource
from xinfer_lab.residency.stepped import SteppedModel, step_ring
from xinfer_lab.residency.tracked_ring import TrackedRing
from xinfer_lab.residency.weights import LayerWeights, ModelWeights

__all__ = ["PIECES"]

DENIED = ("xinfer_lab.residency.streaming", "xinfer_lab.residency.serial", "xinfer_lab.residency.planned")
PARTS = "xinfer_lab.grading.questions.lab3_parts"

Inputs = Mapping[str, Value]
LETTERS = ["A", "B", "C", "D"]


def _itself(answer: Any, inputs: Inputs, observed: Observed) -> object:
    return answer


def _once(**inputs: Value) -> Callable[[Random], list[Case]]:
    return lambda random: [Case("your table" if "rows" in inputs else "your choice", inputs)]


def _question(name: str, points: int, drawn: Callable[[Random], list[Case]]) -> Question:
    return Question(f"lab4.{name}", points, drawn, _itself, DENIED)


def _streams_with(make_class: Callable[[Any], Any]) -> Runner:
    """Streams a case through ``make_class(answer)``, a class of layer sources."""

    def run(answer: Any, inputs: Inputs, open_device: Callable[..., Device]) -> None:
        source = make_class(answer)

        def make(device: Device, weights: ModelWeights) -> LayerSource:
            layout, layers = layer_layout(weights.config), weights.config.num_hidden_layers
            host = PinnedLayers(device, layout, layers)
            made: LayerSource = source(device, layout, weights.config.dtype, host, layers, case.pool)
            return made

        case = ModelCase.of(inputs)
        run_model(case, case.weights(), open_device(memory=case.memory), make)

    return run


def _ring_with_ensure(answer: Any) -> type:
    def ensure(ring: Any, layer: int) -> LayerWeights:
        with noted(ring.device, "ensure", layer):
            weights = answer(ring, layer)
        if not isinstance(weights, LayerWeights):
            raise TypeError(f"ensure has to return slot.holding(layer), but returned {weights!r}")
        if weights.layer != layer:
            raise ValueError(
                f"ensure was asked for layer {layer}, but returned slot.holding({weights.layer}): return "
                "slot.holding(layer) with the layer that was asked for"
            )
        return weights

    # Imported when it is needed: where the gate is recorded, none of the parts is there.
    from xinfer_lab.grading.questions.lab3_parts import neighbours

    ring: Any = streaming_from(**neighbours("ensure"), ensure=ensure)
    return type("StreamingLayers", (ring,), {"hand_over": TrackedRing.hand_over})


def _steps(spare: int = 0) -> Runner:
    """Streams a case by a function that is called for each step."""

    def run(answer: Any, inputs: Inputs, open_device: Callable[..., Device]) -> None:
        case = ModelCase.of(inputs)

        def make_model(weights: ModelWeights, device: Device) -> QwenModel:
            source = step_ring(answer, case.pool, spare=spare)
            return SteppedModel(weights, device, source, batch=case.batch, context=case.context, chunk=case.prompt)

        device = open_device(memory=case.memory)
        model = make_model(case.weights(), device)
        model.begin(case.steps)
        for tokens in case.feed():
            model.forward(tokens)
        model.close()
        device.close()

    return run


def _program(
    name: str, points: int, drawn: Callable[[Random], list[Case]], run: Runner, denied: tuple[str, ...] = ()
) -> Program:
    return Program(f"lab4.{name}", points, drawn, run, (*DENIED, *denied), cpu_seconds=5.0)


def _patient(name: str, spare: int = 0) -> tuple[Piece, Piece]:
    return (
        _question(f"explain_{name}", 1, _once(choices=LETTERS)),
        _program(name, 2, cases.patients(spare), _steps(spare)),
    )


PIECES: tuple[Piece, ...] = (
    _question("predict_states", 1, _once(choices=cases.STATES, rows=8)),
    _question("explain_states", 2, _once(choices=cases.PASSING, rows=6)),
    _question("predict_stale", 1, _once(choices=LETTERS)),
    _program("ensure_fence", 2, cases.streams, _streams_with(_ring_with_ensure), (f"{PARTS}.ensure",)),
    _program("ensure_state", 3, cases.streams, _streams_with(_ring_with_ensure), (f"{PARTS}.ensure",)),
    _question("explain_order", 1, _once(choices=LETTERS)),
    *_patient("ordering"),
    *_patient("lifetime"),
    *_patient("wrap_around"),
    *_patient("mid_call", spare=1),
    _program("gate", 5, cases.streams, _streams_with(lambda answer: answer), (PARTS,)),
)
"""In the notebook's order."""
