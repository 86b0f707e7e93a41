"""Reference answers with one thing changed: a statement taken out, an operator or a constant replaced."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

__all__ = ["Mutant", "mutants"]

_OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.FloorDiv, ast.Add),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult, ast.Mod),
    ast.Mod: (ast.FloorDiv, ast.Mult),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_SWAPPED = {"min": "max", "max": "min"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """The whole source with one change: ``before`` became ``after`` on ``line`` of the source."""

    source: str
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.before}  ->  {self.after}"


def mutants(source: str, function: str) -> list[Mutant]:
    """Every mutant of the top-level function or class ``function``; docstrings and defaults are left alone."""
    tree = ast.parse(source)
    kinds = (ast.FunctionDef, ast.ClassDef)
    place = next(i for i, node in enumerate(tree.body) if isinstance(node, kinds) and node.name == function)
    return [*_deletions(tree, place), *_changes(tree, place)]


def _body(tree: ast.Module, place: int) -> list[ast.stmt]:
    node = tree.body[place]
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    return node.body[1:] if ast.get_docstring(node) is not None else node.body


def _is_text(node: ast.AST) -> TypeGuard[ast.Expr]:
    """Whether ``node`` is a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _nodes(tree: ast.Module, place: int) -> list[ast.AST]:
    return [node for statement in _body(tree, place) for node in ast.walk(statement)]


def _made(tree: ast.Module, node: ast.AST, before: str, after: str) -> Mutant:
    return Mutant(ast.unparse(ast.fix_missing_locations(tree)), getattr(node, "lineno", 0), before, after)


def _deletions(tree: ast.Module, place: int) -> Iterator[Mutant]:
    for number, node in enumerate(_nodes(tree, place)):
        if not isinstance(node, ast.stmt) or isinstance(node, ast.Pass | ast.FunctionDef) or _is_text(node):
            continue
        changed = copy.deepcopy(tree)
        gone = _nodes(changed, place)[number]
        for parent in ast.walk(changed):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(parent, name, None)
                if isinstance(block, list) and gone in block:
                    block[block.index(gone)] = ast.Pass()
        yield _made(changed, node, ast.unparse(node).splitlines()[0], "nothing")


def _changes(tree: ast.Module, place: int) -> Iterator[Mutant]:
    texts = {id(node.value) for node in _nodes(tree, place) if _is_text(node)}
    for number, node in enumerate(_nodes(tree, place)):
        if id(node) in texts:
            continue
        for replacement in _replacements(node):
            changed = copy.deepcopy(tree)
            target = _nodes(changed, place)[number]
            for field, value in replacement.items():
                setattr(target, field, value)
            yield _made(changed, node, ast.unparse(node).splitlines()[0], ast.unparse(target).splitlines()[0])


def _replacements(node: ast.AST) -> Iterator[dict[str, object]]:
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op):
            yield from ({"op": other()} for other in _OPERATORS.get(type(op), ()))
        case ast.Compare(ops=[op]):
            yield from ({"ops": [other()]} for other in _OPERATORS.get(type(op), ()))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield {"op": ast.Not(), "operand": ast.UnaryOp(ast.Not(), operand)}
        case ast.Constant(value=bool(value)):
            yield {"value": not value}
        case ast.Constant(value=int(value)):
            yield from ({"value": other} for other in (value + 1, value - 1))
        case ast.Constant(value=str(value)) if value:
            yield {"value": value + "?"}
        case ast.Name(id=("min" | "max") as name):
            yield {"id": _SWAPPED[name]}
