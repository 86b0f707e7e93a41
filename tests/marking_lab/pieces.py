"""The pieces of the small lab: two functions, a choice, and a queue program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from xinfer_lab.grading.piece import Case, Piece
from xinfer_lab.grading.question import Question
from xinfer_lab.grading.values import Value

if TYPE_CHECKING:
    from xinfer_lab.device.device import Device

__all__ = ["PIECES"]

ANSWERS = ("xinfer_lab.residency.streaming",)


def _numbers(random: Random) -> list[Case]:
    return [Case(f"{n}", {"n": n}) for n in (0, 1, *(random.randint(2, 10**6) for _ in range(4)))]


def _call(answer: Any, inputs: Mapping[str, Value], observed: object) -> object:
    return answer(inputs["n"])


def _streams(random: Random) -> list[Case]:
    from xinfer_lab.grading.programs.model_case import ModelCase

    cases = [ModelCase.draw(random, layers=layers, pool=2, steps=2) for layers in (3, 4)]
    return [Case(case.label, case.inputs()) for case in cases]


def _stream(answer: Any, inputs: Mapping[str, Value], open_device: Callable[..., Device]) -> None:
    from xinfer_lab.grading.programs.model_case import ModelCase, run_model
    from xinfer_lab.qwen2.layout import layer_layout
    from xinfer_lab.residency.host import PinnedLayers

    case = ModelCase.of(inputs)

    def make(device: Device, weights: Any) -> Any:
        layout, layers = layer_layout(weights.config), weights.config.num_hidden_layers
        host = PinnedLayers(device, layout, layers)
        return answer(device, layout, weights.config.dtype, host, layers, case.pool)

    run_model(case, case.weights(), open_device(memory=case.memory), make)


def _program() -> Piece:
    from xinfer_lab.grading.programs.record_program import ProgramPiece

    return ProgramPiece("lab9.streaming", 5, _streams, _stream, ANSWERS)


class _Pieces:
    """The pieces; the one that needs torch is made when it is asked for."""

    def __iter__(self) -> Any:
        yield Question("lab9.double", 2, _numbers, _call)
        yield Question("lab9.triple", 3, _numbers, _call)
        yield Question("lab9.fragile", 1, lambda random: [Case("one", {})], lambda answer, *_: answer)
        yield Question("lab9.choice", 1, lambda random: [Case("your choice", {})], lambda answer, *_: answer)
        yield _program()


PIECES: Any = _Pieces()
