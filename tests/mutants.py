"""Programs that lack one statement: the package's own methods without one `.wait(`, `.signal(` or the like."""

from __future__ import annotations

import ast
import contextlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

VERBS = ("wait", "signal", "assume_common", "wait_idle", "hold", "block")


@dataclass(frozen=True)
class Statement:
    """One expression statement ``<target>.<verb>(...)`` in a method, or in a function where ``cls`` is ''."""

    module: ModuleType
    cls: str
    function: str
    line: int
    verb: str
    text: str

    def __str__(self) -> str:
        place = f"{self.cls}.{self.function}" if self.cls else self.function
        return f"{self.module.__name__.rpartition('.')[2]}.{place}: {self.text}"

    @property
    def where(self) -> str:
        """As a record names it."""
        return f"{self.module.__file__}:{self.line}"


class _Finder(ast.NodeVisitor):
    def __init__(self, module: ModuleType) -> None:
        self.module, self.scope, self.found = module, [], list[Statement]()

    def _enter(self, node: Any) -> None:
        self.scope.append(node.name)
        self.generic_visit(node)
        self.scope.pop()

    visit_ClassDef = visit_FunctionDef = _enter

    def visit_Expr(self, node: ast.Expr) -> None:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in VERBS:
            *classes, function = self.scope
            self.found.append(
                Statement(self.module, ".".join(classes), function, node.lineno, call.func.attr, ast.unparse(node))
            )


def statements(*modules: ModuleType) -> list[Statement]:
    """Every statement of ``modules`` whose loss is to be noticed."""
    found: list[Statement] = []
    for module in modules:
        finder = _Finder(module)
        finder.visit(ast.parse(inspect.getsource(module)))
        found += finder.found
    return found


class _Remover(ast.NodeTransformer):
    def __init__(self, line: int) -> None:
        self.line, self.removed = line, 0

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        if node.lineno != self.line:
            return node
        self.removed += 1
        return ast.copy_location(ast.Pass(), node)


@contextlib.contextmanager
def without(statement: Statement) -> Iterator[None]:
    """The package runs without ``statement`` in this block; other source lines keep their numbers."""
    module = statement.module
    assert module.__file__ is not None
    remover = _Remover(statement.line)
    tree = remover.visit(ast.parse(inspect.getsource(module)))
    assert remover.removed == 1
    copy: dict[str, Any] = {"__name__": module.__name__, "__file__": module.__file__}
    exec(compile(ast.fix_missing_locations(tree), module.__file__, "exec"), copy)
    with pytest.MonkeyPatch.context() as patch:
        if statement.cls:
            changed = getattr(copy[statement.cls], statement.function)
            patch.setattr(getattr(module, statement.cls), statement.function, changed)
        else:
            function = inspect.unwrap(getattr(module, statement.function))
            patch.setattr(function, "__code__", inspect.unwrap(copy[statement.function]).__code__)
        yield
