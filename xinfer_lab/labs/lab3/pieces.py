"""The pieces of Lab 3, double-buffering."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from xinfer_lab.device.device import Device
from xinfer_lab.device.gpu_spec import GpuSpec
from xinfer_lab.grading.asking import arguments, itself, once
from xinfer_lab.grading.piece import Case, Observed, Piece
from xinfer_lab.grading.programs.model_case import ModelCase, run_model
from xinfer_lab.grading.programs.record_program import ProgramPiece, Runner
from xinfer_lab.grading.question import Question
from xinfer_lab.grading.values import Value
from xinfer_lab.labs.lab3 import cases
from xinfer_lab.labs.lab3.given.ring import SlotRing, streaming_from
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.host import PinnedLayers
from xinfer_lab.residency.weights import ModelWeights

__all__ = ["PIECES"]

STREAMING = "xinfer_lab.residency.streaming"
PARTS = "xinfer_lab.labs.lab3.parts"

Inputs = Mapping[str, Value]


def _tokens(answer: Any, inputs: Inputs, observed: Observed) -> object:
    return answer(inputs["layer_bytes"], inputs["flops_per_token"], GpuSpec(**inputs["gpu"]))


def _stream(part: str, *, split: bool = False) -> Runner:
    """Streams a case with the answer as ``part`` beside given ones; ``part`` "" takes all from the answer, a mapping.

    ``split`` announces the last pass on its own, after the others have run.
    """

    def run(answer: Any, inputs: Inputs, open_device: Callable[..., Device]) -> None:
        parts = {**_neighbours(part), part: answer} if part else dict(answer)
        if part == "wait_until_read":
            parts[part] = _at_another_step(answer)
        source = streaming_from(**parts)

        def make(device: Device, weights: ModelWeights) -> SlotRing:
            layout, layers = layer_layout(weights.config), weights.config.num_hidden_layers
            host = PinnedLayers(device, layout, layers)
            ring = source(device, layout, weights.config.dtype, host, layers, case.pool)
            ring.begin_at(case.begun * layers)
            return ring

        case = ModelCase.of(inputs)
        device = open_device(memory=case.memory)
        run_model(case, case.weights(), device, make, runs=(case.steps - 1, 1) if split else None)

    return run


def _at_another_step(wait_until_read: Callable[[Any, int], object]) -> Callable[[Any, int], None]:
    """Calls a part with another ``ring.step``, two steps back: in ``release``, ``ring.step`` happens to be the value to
    wait for."""

    def wait(ring: Any, step: int) -> None:
        now = ring.step
        ring.step = max(0, now - 2)
        try:
            wait_until_read(ring, step)
        finally:
            ring.step = now

    return wait


def _neighbours(part: str) -> Mapping[str, Any]:
    # Imported when it is needed: where whole rings and formulas are recorded, none of the parts is there.
    from xinfer_lab.labs.lab3.parts import neighbours

    return neighbours(part)


def _question(name: str, points: int, drawn: Callable[[Random], list[Case]], ask: Any) -> Question:
    return Question(f"lab3.{name}", points, drawn, ask, (STREAMING, PARTS))


def _program(name: str, points: int, part: str, *, split: bool = False) -> ProgramPiece:
    drawn = cases.streams if part else cases.gate_streams
    denied = (STREAMING, f"{PARTS}.{part}" if part else PARTS)
    return ProgramPiece(f"lab3.{name}", points, drawn, _stream(part, split=split), denied, cpu_seconds=5.0)


LETTERS = ["A", "B", "C", "D"]

PIECES: tuple[Piece, ...] = (
    _question("predict_wrap", 1, once(low=0, high=28), itself),
    _question("layer_of", 1, cases.place_cases, arguments("step", "layers")),
    _question("slot_of", 2, cases.place_cases, arguments("step", "layers", "pool")),
    _question("explain_wrap", 1, once(choices=LETTERS), itself),
    _program("ensure", 3, "ensure"),
    _question("predict_read", 1, once(choices=LETTERS), itself),
    _program("wait_until_read", 3, "wait_until_read"),
    _program("prefetch", 2, "prefetch", split=True),
    _program("prefetch_ahead", 2, "prefetch"),
    _program("release", 3, "release"),
    _question("predict_gain", 1, once(choices=LETTERS), itself),
    _question("pass_times", 3, cases.pass_cases, arguments("layers", "t_trans", "t_comp")),
    _question("tokens_to_hide", 3, cases.hiding_cases, _tokens),
    _question("explain_hiding", 1, once(choices=LETTERS), itself),
    _program("gate", 5, ""),
)
"""In the notebook's order."""
