"""The pieces of Lab 1, residency."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from xinfer_lab.grading.piece import Case, Observed, Piece, Question
from xinfer_lab.grading.questions import lab1_cases as cases
from xinfer_lab.grading.questions.header_file import HeaderFile
from xinfer_lab.grading.questions.lab1_gate import gate_cases
from xinfer_lab.grading.values import Value

__all__ = ["PIECES"]

DENIED = ("xinfer_lab.qwen2", "xinfer_lab.residency", "safetensors", "transformers", "accelerate")

Inputs = Mapping[str, Value]


def _arguments(*names: str) -> Callable[[Any, Inputs, Observed], object]:
    def ask(answer: Any, inputs: Inputs, observed: Observed) -> object:
        return answer(*(inputs[name] for name in names))

    return ask


def _header(answer: Any, inputs: Inputs, observed: Observed) -> object:
    file = HeaderFile.of(inputs["file"], cases.LONGEST_HEADER)
    try:
        return answer(file)
    finally:
        observed["asked"], observed["allowed"] = file.asked, file.allowed
        observed["requests"] = [list(request) for request in file.requests]


def _itself(answer: Any, inputs: Inputs, observed: Observed) -> object:
    return answer


def _once(**inputs: Value) -> Callable[[Random], list[Case]]:
    return lambda random: [Case("your prediction" if "choices" not in inputs else "your choice", inputs)]


def _question(name: str, points: int, drawn: Callable[[Random], list[Case]], ask: Any) -> Question:
    return Question(f"lab1.{name}", points, drawn, ask, DENIED)


PIECES: tuple[Piece, ...] = (
    _question("predict_embedding", 1, _once(low=0, high=100), _itself),
    _question("layer_bytes", 3, cases.config_cases, _arguments("config")),
    _question("model_bytes", 2, cases.model_cases, _arguments("config", "bytes_per_layer")),
    _question("predict_cache", 1, _once(choices=["A", "B", "C", "D"]), _itself),
    _question("kv_cache_bytes", 2, cases.kv_cases, _arguments("config", "context", "batch")),
    _question("explain_cache", 1, _once(choices=["A", "B", "C", "D"]), _itself),
    _question("read_header", 2, cases.good_headers, _header),
    _question("refuse_header", 2, cases.hostile_headers, _header),
    _question("tensor_ranges", 2, cases.good_ranges, _arguments("header", "data_start", "file_size")),
    _question("refuse_ranges", 2, cases.hostile_ranges, _arguments("header", "data_start", "file_size")),
    _question("layer_table", 2, cases.layer_names, _arguments("ranges")),
    _question("predict_pool", 1, _once(choices=["A", "B", "C", "D"]), _itself),
    _question("decide_residency", 3, cases.budgets, _arguments("sizes", "budget")),
    _question("refuse_budget", 2, cases.too_small_budgets, _arguments("sizes", "budget")),
    _question("explain_pool", 1, _once(choices=["A", "B", "C", "D"]), _itself),
    _question("gate", 4, gate_cases, _arguments("config", "context", "batch", "working", "budget")),
)
"""In the notebook's order."""
