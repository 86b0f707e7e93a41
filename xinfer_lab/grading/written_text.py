"""Finds the text of a function or class in the cell, or the file, that defined it."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator, Mapping
from textwrap import dedent
from types import FunctionType
from typing import Any

__all__ = ["NotKept", "globals_of", "text_of"]


class NotKept(Exception):
    """An answer that cannot be written to a file; says what stands in the way."""


def text_of(value: FunctionType | type) -> str:
    """The definition of ``value`` as it was written, decorators included. Raises `NotKept` where it is not found."""
    name = value.__name__
    if isinstance(value, FunctionType) and value.__code__.co_freevars:
        around = ", ".join(value.__code__.co_freevars)
        raise NotKept(f"{name} uses {around} of the function around it: define it at the left margin of a cell")
    for lines, line in _places(value):
        held = [node for node in _definitions(lines, value) if line is None or _holds(node, line)]
        if held:
            node = held[-1]
            if isinstance(node, ast.ClassDef) and (late := _put_in_later(value, node)):
                raise NotKept(f"{name} got its method {late} from outside: write it inside the class")
            return dedent("".join(lines[_first(node) - 1 : node.end_lineno])).rstrip()
    raise NotKept(
        f"the text of {name} is not to be found: define it in a cell, with def or class, below no magic such as %%time"
    )


def globals_of(value: FunctionType | type) -> Mapping[str, Any]:
    """The names around ``value``."""
    if isinstance(value, FunctionType):
        return value.__globals__
    own = next(_methods(value), None)
    home = sys.modules.get(value.__module__)
    return own.__globals__ if own is not None else vars(home) if home is not None else {}


def _places(value: FunctionType | type) -> Iterator[tuple[list[str], int | None]]:
    """The texts that may define ``value``, each with a line inside of the definition where that is known."""
    methods = [value] if isinstance(value, FunctionType) else list(_methods(value))
    for method in methods:
        code = method.__code__
        linecache.checkcache(code.co_filename)
        # A dataclass writes methods that stand in no file.
        if lines := linecache.getlines(code.co_filename, method.__globals__):
            yield lines, code.co_firstlineno
    if isinstance(value, FunctionType):
        return
    # A class without methods of its own knows no file: the newest cell that defines one of this name, then its module.
    for _, entry in reversed(list(linecache.cache.items())):
        if len(entry) == 4 and entry[1] is None:
            yield entry[2], None
    if file := getattr(sys.modules.get(value.__module__), "__file__", None):
        yield linecache.getlines(file), None


_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _definitions(lines: list[str], value: FunctionType | type) -> list[_Definition]:
    """Definitions of the kind and name of ``value`` in ``lines``."""
    try:
        body = ast.parse("".join(lines))
    except SyntaxError:
        # A cell may hold magics: only the statement itself has to be Python.
        body = _statements(lines)
    wanted = ast.FunctionDef | ast.AsyncFunctionDef if isinstance(value, FunctionType) else ast.ClassDef
    return [node for node in ast.walk(body) if isinstance(node, wanted) and node.name == value.__name__]


def _holds(node: _Definition, line: int) -> bool:
    return _first(node) <= line <= (node.end_lineno or node.lineno)


def _first(node: _Definition) -> int:
    """Its first line, decorators included."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _put_in_later(value: object, node: ast.ClassDef) -> str | None:
    """A method of ``value`` that its text does not have."""
    written = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    late = (name for name, member in vars(value).items() if isinstance(member, FunctionType)
            and not member.__qualname__.startswith(f"{node.name}.") and name not in written)  # fmt: skip
    return next(late, None)


def _statements(lines: list[str]) -> ast.Module:
    """The definitions of a cell whose other lines need not be Python."""
    kept = (" ", "\t", "def ", "class ", "@", "async ")
    blank = [line if line.startswith(kept) else "\n" for line in lines]
    try:
        return ast.parse("".join(blank))
    except SyntaxError:
        return ast.Module([], [])


def _methods(value: type) -> Iterator[FunctionType]:
    for member in vars(value).values():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if isinstance(function, FunctionType) and function.__qualname__.startswith(f"{value.__name__}."):
            yield function
