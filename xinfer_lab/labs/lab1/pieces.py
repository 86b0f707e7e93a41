"""The pieces of Lab 1, residency."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from xinfer_lab.grading.asking import arguments, itself, once
from xinfer_lab.grading.piece import Case, Observed, Piece
from xinfer_lab.grading.question import Question
from xinfer_lab.grading.values import Value
from xinfer_lab.labs.lab1 import cases, file_cases
from xinfer_lab.labs.lab1.gate import gate_cases
from xinfer_lab.labs.lab1.header_file import HeaderFile

__all__ = ["PIECES"]

DENIED = ("xinfer_lab.qwen2", "xinfer_lab.residency", "safetensors", "transformers", "accelerate")

Inputs = Mapping[str, Value]


def _header(answer: Any, inputs: Inputs, observed: Observed) -> object:
    file = HeaderFile.of(inputs["file"], file_cases.LONGEST_HEADER)
    try:
        return answer(file)
    finally:
        observed["asked"], observed["allowed"] = file.asked, file.allowed
        observed["requests"] = [list(request) for request in file.requests]


def _question(name: str, points: int, drawn: Callable[[Random], list[Case]], ask: Any) -> Question:
    return Question(f"lab1.{name}", points, drawn, ask, DENIED)


PIECES: tuple[Piece, ...] = (
    _question("predict_embedding", 1, once(low=0, high=100), itself),
    _question("layer_bytes", 3, cases.config_cases, arguments("config")),
    _question("model_bytes", 2, cases.model_cases, arguments("config", "bytes_per_layer")),
    _question("predict_cache", 1, once(choices=["A", "B", "C", "D"]), itself),
    _question("kv_cache_bytes", 2, cases.kv_cases, arguments("config", "context", "batch")),
    _question("explain_cache", 1, once(choices=["A", "B", "C", "D"]), itself),
    _question("read_header", 2, file_cases.good_headers, _header),
    _question("refuse_header", 2, file_cases.hostile_headers, _header),
    _question("tensor_ranges", 2, file_cases.good_ranges, arguments("header", "data_start", "file_size")),
    _question("refuse_ranges", 2, file_cases.hostile_ranges, arguments("header", "data_start", "file_size")),
    _question("layer_table", 2, file_cases.layer_names, arguments("ranges")),
    _question("predict_pool", 1, once(choices=["A", "B", "C", "D"]), itself),
    _question("decide_residency", 3, cases.budgets, arguments("sizes", "budget")),
    _question("refuse_budget", 2, cases.too_small_budgets, arguments("sizes", "budget")),
    _question("explain_pool", 1, once(choices=["A", "B", "C", "D"]), itself),
    _question("gate", 4, gate_cases, arguments("config", "context", "batch", "working", "budget")),
)
"""In the notebook's order."""
