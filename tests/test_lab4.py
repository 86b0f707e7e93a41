"""Lab 4: what its cases reach, and limits that tell an endless program from a slow one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.answer_bank import answers, run
from xinfer_lab.grading import find_piece, pieces_of
from xinfer_lab.grading.guard import AnswerTimeout
from xinfer_lab.grading.programs import record_program
from xinfer_lab.grading.programs.model_case import ModelCase
from xinfer_lab.grading.programs.record_program import ProgramPiece

PROGRAMS = [piece.name for piece in pieces_of("lab4") if isinstance(piece, ProgramPiece)]
CLINIC = ("lab4.ordering", "lab4.lifetime", "lab4.wrap_around", "lab4.mid_call")


def drawn(piece: str) -> Iterator[list[ModelCase]]:
    """The cases of ``piece`` for a few seeds."""
    for seed in range(5):
        yield [ModelCase.of(case.inputs) for case in find_piece(piece).draw(seed)]


@pytest.mark.parametrize("piece", PROGRAMS)
def test_every_seed_has_pools_to_8_many_steps_a_second_model_and_as_many_slots_as_layers(piece: str) -> None:
    for cases in drawn(piece):
        assert {2, 3, 8} <= {case.pool for case in cases}
        assert any((case.begun + case.steps) * case.layers > 300 for case in cases)
        assert any(case.others for case in cases)
        assert any(case.pool == case.layers for case in cases)
        assert any(case.layers % case.pool for case in cases)


@pytest.mark.parametrize("piece", [piece for piece in PROGRAMS if piece not in CLINIC])
def test_passes_are_announced_again(piece: str) -> None:
    assert all(max(len(case.runs) for case in cases) >= 2 for cases in drawn(piece))


def test_the_gate_has_a_real_long_run_of_many_layers() -> None:
    for cases in drawn("lab4.gate"):
        long = cases[-1]
        assert long.layers >= 126 and long.begun == 0 and long.steps * long.layers > 300 and len(long.runs) >= 2


def report_of(monkeypatch: pytest.MonkeyPatch, name: str, **limits: int) -> str:
    """What the gate says of a banked answer under other limits."""
    for limit, value in limits.items():
        monkeypatch.setattr(record_program, limit, value)
    answer = next(answer for answer in answers("correct") if answer.name.endswith(name))
    piece: Any = find_piece("lab4.gate")
    cases = piece.draw(0)[-1:]
    return str(piece.verify(cases, piece.record(run(answer)["StreamingLayers"], cases)))


def test_a_program_that_is_getting_on_is_told_that_it_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    said = report_of(monkeypatch, "StreamingLayers/correct/reference", MAX_RECORDS=4_000)
    assert "It is too slow: it was stopped with" in said and "It took too long" not in said


def test_what_is_done_after_a_stop_is_not_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packing a long stream takes a while."""
    portable = record_program._portable

    def slow(stream: Any) -> Any:
        began = time.process_time()
        while time.process_time() - began < 1.0:
            pass
        return portable(stream)

    monkeypatch.setattr(record_program, "_portable", slow)
    assert "It is too slow" in report_of(monkeypatch, "StreamingLayers/correct/reference", MAX_RECORDS=4_000)


def test_a_program_that_submits_commands_without_a_kernel_is_not_called_slow() -> None:
    def endless(ring: Any, step: int, compute: Any) -> None:
        while True:
            ring.device.direct_queue.wait(ring.engine.copied, 1)

    piece = replace(find_piece("lab4.ordering"), cpu_seconds=60.0)  # type: ignore[type-var]
    cases = piece.draw(0)[:1]
    data = piece.record(endless, cases)
    assert data["outcomes"][0]["raised"]["type"] == AnswerTimeout.__name__
    assert "It took too long" in str(piece.verify(cases, data))
