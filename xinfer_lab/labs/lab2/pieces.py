"""The pieces of Lab 2, the copy queue.

What stands beside an answer is imported when it is needed: each piece runs where the modules that hold its answer
cannot be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from xinfer_lab.device.device import Device
from xinfer_lab.grading.asking import itself, once
from xinfer_lab.grading.piece import Case, Piece
from xinfer_lab.grading.programs.calls import NotedEngine, NotedRing
from xinfer_lab.grading.programs.record_program import ProgramPiece, Runner
from xinfer_lab.grading.question import Question
from xinfer_lab.grading.values import Value
from xinfer_lab.labs.lab2 import layers, script
from xinfer_lab.labs.lab2.given.one_slot import LayerUploader
from xinfer_lab.qwen2.layout import LayerLayout

__all__ = ["PIECES"]

_LATER = (
    *(f"xinfer_lab.residency.{name}" for name in ("serial", "streaming", "ring", "planned", "compressed")),
    "xinfer_lab.labs.lab3.parts",
)
_ENGINE = (*(f"xinfer_lab.residency.{name}" for name in ("upload", "host", "encoded_host")), *_LATER)
_RING = ("xinfer_lab.residency.staging", *_ENGINE)
"""What holds the answer to a part: its own module, and those that do the same thing in a later lab."""

Inputs = Mapping[str, Value]


def _upload(answer: Any, inputs: Inputs, open_device: Callable[..., Device]) -> None:
    from xinfer_lab.residency.staging import StagingRing

    layers.upload_layers(answer, StagingRing, inputs, open_device)


def _serial(answer: Any, inputs: Inputs, open_device: Callable[..., Device]) -> None:
    from xinfer_lab.residency.host import StagedLayers
    from xinfer_lab.residency.upload import CopyEngine

    def make(device: Device, layout: LayerLayout) -> LayerUploader:
        return CopyEngine(device, StagedLayers(device, layout, layers.DEPTH))

    layers.run_serial(answer, make, inputs, open_device)


def _gate(answer: Any, inputs: Inputs, open_device: Callable[..., Device]) -> None:
    def make(device: Device, layout: LayerLayout) -> Any:
        ring = NotedRing(device, answer["StagingRing"](device, layers.DEPTH * layout.nbytes))
        return NotedEngine(device, answer["CopyEngine"](device, ring, layout))

    layers.run_serial(answer["SerialLayers"], make, inputs, open_device)


def _choice(name: str, **inputs: Value) -> Question:
    return Question(f"lab2.{name}", 1, once(**inputs), itself)


def _program(
    name: str, points: int, drawn: Callable[[Random], list[Case]], run: Runner, denied: tuple[str, ...]
) -> ProgramPiece:
    return ProgramPiece(f"lab2.{name}", points, drawn, run, denied, cpu_seconds=5.0)


LETTERS = ["A", "B", "C", "D"]

PIECES: tuple[Piece, ...] = (
    _choice("predict_copy", choices=LETTERS),
    _choice("predict_early", choices=LETTERS),
    _choice("explain_fence", choices=LETTERS),
    _choice("predict_pinned", low=1, high=1000),
    _program("ring_alignment", 2, script.aligned_scripts, script.play, _RING),
    _program("ring_wrap", 2, script.wrapping_scripts(patient=True), script.play, _RING),
    _program("ring_wait", 3, script.wrapping_scripts(patient=False), script.play, _RING),
    Question("lab2.ring_refuse", 2, script.requests, script.ask_for_room, _RING, cpu_seconds=1.0),
    _choice("predict_tiny", low=1, high=10_000),
    _program("upload", 3, layers.layer_scripts, _upload, _ENGINE),
    _program("upload_async", 2, layers.layer_scripts, _upload, _ENGINE),
    _program("serial", 4, layers.serial_cases(4), _serial, _LATER),
    _choice("predict_time", low=0, high=1000),
    _program("gate", 5, layers.serial_cases(3), _gate, _RING),
    _choice("explain_time", choices=LETTERS),
)
"""In the notebook's order."""
