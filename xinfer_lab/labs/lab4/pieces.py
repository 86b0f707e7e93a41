"""The pieces of Lab 4, cross-queue state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from random import Random
from typing import Any

from xinfer_lab.device.device import Device
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.grading.asking import itself, once
from xinfer_lab.grading.piece import Case, Piece
from xinfer_lab.grading.programs.calls import noted
from xinfer_lab.grading.programs.model_case import ModelCase, beside, run_model
from xinfer_lab.grading.programs.record_program import ProgramPiece, Runner
from xinfer_lab.grading.question import Question
from xinfer_lab.grading.values import Value
from xinfer_lab.labs.lab3.given.bare_ring import driven_by
from xinfer_lab.labs.lab4 import cases
from xinfer_lab.labs.lab4.given.stepped import SteppedModel, step_ring
from xinfer_lab.labs.lab4.given.tracked_ring import TrackedRing
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.host import PinnedLayers
from xinfer_lab.residency.source import LayerSource
from xinfer_lab.residency.weights import LayerWeights, ModelWeights, SizedWeights

__all__ = ["PIECES"]

DENIED = (
    *(f"xinfer_lab.residency.{name}" for name in ("streaming", "serial", "planned")),
    # Rings that keep the books of states for their users, which is what this lab asks for.
    "xinfer_lab.labs.lab2.given",
    "xinfer_lab.labs.lab3.given.ring",
)
PARTS = "xinfer_lab.labs.lab3.parts"

Inputs = Mapping[str, Value]
LETTERS = ["A", "B", "C", "D"]


def _question(name: str, points: int, drawn: Callable[[Random], list[Case]]) -> Question:
    return Question(f"lab4.{name}", points, drawn, itself, DENIED)


def _streams_with(make_class: Callable[[Any], Any]) -> Runner:
    """Streams a case through ``make_class(answer)``, a class of layer sources."""

    def run(answer: Any, inputs: Inputs, open_device: Callable[..., Device]) -> None:
        source = make_class(answer)

        def make(device: Device, weights: ModelWeights) -> LayerSource:
            layout, layers = layer_layout(weights.config), weights.config.num_hidden_layers
            host = PinnedLayers(device, layout, layers)
            made = source(device, layout, weights.config.dtype, host, layers, case.pool)
            if case.begun:
                made.begin_at(case.begun * layers)
            ready: LayerSource = made
            return ready

        case = ModelCase.of(inputs)
        if case.steps * case.layers < cases.LONG:
            run_model(case, case.weights(), open_device(memory=case.memory), make)
        else:
            run_model(case, SizedWeights(case.config), open_device(memory=case.memory, computes=False), make)

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
    from xinfer_lab.labs.lab3.parts import neighbours

    return driven_by(TrackedRing, **neighbours("ensure"), ensure=ensure)


def _steps(spare: int = 0) -> Runner:
    """Streams a case by a function that is called for each step."""

    def run(answer: Any, inputs: Inputs, open_device: Callable[..., Device]) -> None:
        case = ModelCase.of(inputs)
        device = open_device(memory=case.memory)
        others = _others(answer, case, spare) if case.others else iter(())
        next(others, None)
        for _ in _passes(answer, case, spare, device):
            next(others, None)

    return run


def _passes(answer: Any, case: ModelCase, spare: int, device: Device) -> Iterator[None]:
    """Open the model, run a pass at each step, close model and device."""
    source = step_ring(answer, case.pool, spare=spare)
    model = SteppedModel(case.weights(), device, source, batch=case.batch, context=case.context, chunk=case.prompt)
    ring: Any = model.source
    ring.begin_at(case.begun * case.layers)
    model.begin(case.steps)
    for tokens in case.feed():
        model.forward(tokens)
        yield
    model.close()
    device.close()


def _others(answer: Any, case: ModelCase, spare: int) -> Iterator[None]:
    """Another model that is over before the first pass, then a pass of a third at each."""
    for ahead in (case.steps + 1, 1):
        own = beside(case)
        passes = _passes(answer, own, spare, EmulatedDevice(memory=own.memory, check=False))
        for _ in islice(passes, ahead):
            pass
    yield from passes


def _program(
    name: str,
    points: int,
    drawn: Callable[[Random], list[Case]],
    run: Runner,
    denied: tuple[str, ...] = (),
    seconds: float = 5.0,
) -> ProgramPiece:
    return ProgramPiece(f"lab4.{name}", points, drawn, run, (*DENIED, *denied), cpu_seconds=seconds)


def _patient(name: str, spare: int = 0) -> tuple[Piece, Piece]:
    return (
        _question(f"explain_{name}", 1, once(choices=LETTERS)),
        _program(name, 2, cases.patients(spare), _steps(spare)),
    )


PIECES: tuple[Piece, ...] = (
    _question("predict_states", 1, once(choices=cases.STATES, rows=8)),
    _question("explain_states", 2, once(choices=cases.PASSING, rows=6)),
    _question("predict_stale", 1, once(choices=LETTERS)),
    _program("ensure_fence", 2, cases.streams, _streams_with(_ring_with_ensure), (f"{PARTS}.ensure",)),
    _program("ensure_state", 3, cases.streams, _streams_with(_ring_with_ensure), (f"{PARTS}.ensure",)),
    _question("explain_order", 1, once(choices=LETTERS)),
    *_patient("ordering", spare=1),
    *_patient("lifetime"),
    *_patient("wrap_around", spare=1),
    *_patient("mid_call", spare=1),
    # The long run takes 0.3 s, and where each step waits for all steps before it, ten times that.
    _program("gate", 5, cases.gate_streams, _streams_with(lambda answer: answer), (PARTS,), seconds=15.0),
)
"""In the notebook's order."""
