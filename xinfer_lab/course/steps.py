"""Decides what has to run, and in which order, to record the answers of a transplanted notebook."""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xinfer_lab.course.grade_cells import GradeCell
from xinfer_lab.course.transplant import Origin, Placed

__all__ = ["Ask", "Run", "Step", "defined_names", "steps_of"]


@dataclass(frozen=True, slots=True)
class Run:
    """Run the code of the placed cell number ``place``."""

    place: int
    name: str
    source: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Ask:
    """Record the answers that the grade cell number ``place`` looks at."""

    place: int
    graded: GradeCell


Step = Run | Ask


def steps_of(placed: Sequence[Placed], graded: Mapping[str, GradeCell]) -> tuple[Step, ...]:
    """The steps, from top to bottom as in a notebook that is run whole.

    Free cells of the course (examples, explorations) that nobody changed run only where a later step uses a name that
    they define: what marking needs for another reason belongs into a locked cell.
    """
    steps: list[Step] = []
    for place, cell in enumerate(placed):
        if cell.cell.kind != "code":
            continue
        if cell.origin is Origin.CHECK:
            if (found := graded.get(cell.name)) is not None and found.checks:
                steps.append(Ask(place, found))
        elif cell.cell.text:
            steps.append(Run(place, cell.name, cell.cell.source, cell.origin))
    kept: list[Step] = []
    needed: set[str] | None = set()
    for step in reversed(steps):
        if isinstance(step, Ask):
            used = (
                set[str]()
                if needed is None
                else set().union(*(_names(check.expression)[1] for check in step.graded.checks))
            )
        else:
            names = _parse(step.source)
            if names is None:  # magics, or no Python: it may use and define anything
                needed = None
                kept.append(step)
                continue
            defined, used = names
            if step.origin is Origin.FREE and needed is not None and not defined & needed:
                continue
        if needed is not None:
            needed |= used
        kept.append(step)
    return tuple(reversed(kept))


def _parse(source: str) -> tuple[set[str], set[str]] | None:
    try:
        return _names(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: nested too deep
        return None


def defined_names(source: str, name: str) -> set[str]:
    """The names that ``source`` defines; of what cannot be parsed, ``name`` if it is in there."""
    names = _parse(source)
    return names[0] if names is not None else {name} & set(re.findall(r"\w+", source))


def _names(source: str) -> tuple[set[str], set[str]]:
    """The global names that ``source`` binds or changes, and those that it uses, functions and classes inside
    included.
    """
    tree = ast.parse(source)
    defined, used = set[str](), set[str]()
    tables = [symtable.symtable(source, "cell", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if table.get_type() == "module" or symbol.is_global():
                if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace():
                    defined.add(symbol.get_name())
                if symbol.is_referenced():
                    used.add(symbol.get_name())
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            owner: ast.expr = node
            while isinstance(owner, ast.Attribute | ast.Subscript):
                owner = owner.value
            if isinstance(owner, ast.Name):
                defined.add(owner.id)
    return defined, used
