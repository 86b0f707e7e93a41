"""What an instructor's grade cells ask: read from their code, never run."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from xinfer_lab.course.notebook import Cell
from xinfer_lab.grading.check import VISIBLE

__all__ = ["BadGradeCell", "Check", "GradeCell", "grade_cells"]

FORM = 'check("lab.piece", ANSWER) or check("lab.piece", ANSWER, seed=None)'


class BadGradeCell(ValueError):
    """A grade cell of the instructor's that marking cannot carry out; the message names the cell and the line."""


@dataclass(frozen=True, slots=True)
class Check:
    """``check(piece, expression, seed=seed)``. ``seed`` None stands for cases that nobody has seen."""

    piece: str
    expression: str
    seed: int | None


@dataclass(frozen=True, slots=True)
class GradeCell:
    """A graded cell: its checks in order, or none where the instructor grades it (``by_hand``)."""

    grade_id: str
    points: float
    checks: tuple[Check, ...]
    by_hand: bool


def grade_cells(cells: Sequence[Cell]) -> tuple[GradeCell, ...]:
    """The graded cells of the instructor's notebook, in order. Raises `BadGradeCell`."""
    found = []
    for cell in cells:
        if not cell.mark.get("grade"):
            continue
        by_hand = bool(cell.mark.get("solution")) or cell.kind != "code"
        checks = () if by_hand else tuple(_checks(cell))
        found.append(GradeCell(str(cell.grade_id), float(cell.mark["points"]), checks, by_hand))
    return tuple(found)


def _checks(cell: Cell) -> list[Check]:
    try:
        statements = ast.parse(cell.source).body
    except SyntaxError as error:
        raise BadGradeCell(f"the grade cell {cell.grade_id} is no Python: {error}") from None
    checks = [_check(cell, statement) for statement in statements]
    if not checks:
        raise BadGradeCell(f"the grade cell {cell.grade_id} checks nothing: it needs {FORM}")
    return checks


def _check(cell: Cell, statement: ast.stmt) -> Check:
    match statement:
        case ast.Expr(
            ast.Call(ast.Name("check"), [ast.Constant(str(piece)), answer], [] | [ast.keyword("seed")] as keywords)
        ):
            pass
        case _:
            line = ast.get_source_segment(cell.source, statement) or ""
            raise BadGradeCell(f"the grade cell {cell.grade_id} has the line {line[:80]!r}; all it may hold is {FORM}")
    seed: object = VISIBLE
    for keyword in keywords:
        if not isinstance(keyword.value, ast.Constant):
            raise BadGradeCell(f"the grade cell {cell.grade_id} has a seed that is not written out")
        seed = keyword.value.value
    if seed is not None and type(seed) is not int:
        raise BadGradeCell(f"the grade cell {cell.grade_id} has the seed {seed!r}, which is no int")
    return Check(piece, ast.unparse(answer), seed)
