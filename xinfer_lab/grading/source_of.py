"""The source of an answer as a module of its own: what its author wrote, and what that needs to be imported alone."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import dis
import linecache
import os
import sys
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

__all__ = ["NotKept", "source_of"]


class NotKept(Exception):
    """An answer that cannot be written to a file; says what stands in the way."""


def source_of(answer: object) -> str:
    """A module that defines ``answer``, a function or class of a notebook: its text, the helpers of the notebook that
    it uses, constants, and imports.

    Raises `NotKept` for anything else, and for an answer that uses what only the notebook's memory holds.
    """
    if not isinstance(answer, (FunctionType, type)):
        raise NotKept(f"a function or a class can be kept, not a {type(answer).__name__}")
    collected = _Collected()
    collected.add(answer.__name__, answer, {})
    blocks = ["\n".join(sorted(collected.imports)), "\n".join(collected.constants), *collected.definitions]
    return "\n\n\n".join(block for block in blocks if block) + "\n"


class _Collected:
    """What a module needs, in an order in which it can be executed."""

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.constants: list[str] = []
        self.definitions: list[str] = []
        self._seen: set[str] = set()

    def add(self, name: str, value: object, around: Mapping[str, Any]) -> None:
        """Whatever makes ``name`` mean ``value``, among the names ``around``."""
        if name in self._seen:
            return
        self._seen.add(name)
        if isinstance(value, ModuleType):
            alias = "" if value.__name__ == name else f" as {name}"
            self.imports.add(f"import {value.__name__}{alias}")
        elif (place := _importable(value)) is not None:
            own = str(getattr(value, "__name__", name))
            self.imports.add(f"from {place} import {own}" + ("" if own == name else f" as {name}"))
        elif isinstance(value, (FunctionType, type)):
            self._add_definition(value, around)
            if value.__name__ != name:
                self.constants.append(f"{name} = {value.__name__}")
        elif _is_plain(value):
            self.constants.append(f"{name} = {value!r}")
        else:
            raise NotKept(
                f"it uses {name}, a {type(value).__name__} that only the notebook holds: pass it as an argument, or "
                "make it inside the function"
            )

    def _add_definition(self, value: FunctionType | type, around: Mapping[str, Any]) -> None:
        text, names = _definition(value, around)
        for used in _globals_used(text):
            if used in names and used != value.__name__:
                self.add(used, names[used], names)
        self.definitions.append(text)


def _importable(value: object) -> str | None:
    """The module that ``value`` can be imported from by its own name, None for what a notebook made."""
    home = getattr(value, "__module__", None)
    name = getattr(value, "__name__", None)
    if not isinstance(home, str) or not isinstance(name, str) or home == "__main__":
        return None
    module = sys.modules.get(home)
    return home if module is not None and getattr(module, name, None) is value else None


def _is_plain(value: object) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False


def _definition(value: FunctionType | type, around: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The text of a function or class, and the names around it: those of its own code, else ``around``."""
    functions = [value] if isinstance(value, FunctionType) else list(_methods(value))
    if isinstance(value, type) and dataclasses.is_dataclass(value) and not any(map(_is_written, functions)):
        return _dataclass(value), around
    if not functions:
        raise NotKept(f"{value.__name__} has no code of its own")
    written = next(filter(_is_written, functions), functions[0])
    code, names = written.__code__, written.__globals__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, dict(names))
    kind = ast.FunctionDef | ast.AsyncFunctionDef if isinstance(value, FunctionType) else ast.ClassDef
    found = [node for node in _parsed(lines) if isinstance(node, kind) and node.name == value.__name__]
    held = [node for node in found if node.lineno <= code.co_firstlineno <= (node.end_lineno or node.lineno)] or found
    if not held:
        raise _not_found(value)
    return _cut(lines, held[-1]), names


def _dataclass(value: type) -> str:
    """The text of a class whose methods are all made by `dataclass`, which say nothing of where it was written: it is
    looked for in the cells, from the newest on."""
    for place, entry in reversed(list(linecache.cache.items())):
        if os.path.exists(place) or len(entry) != 4 or f"class {value.__name__}" not in "".join(entry[2]):
            continue
        for node in _parsed(entry[2]):
            fields = [part.target for part in getattr(node, "body", ()) if isinstance(part, ast.AnnAssign)]
            names = [field.id for field in fields if isinstance(field, ast.Name)]
            if isinstance(node, ast.ClassDef) and node.name == value.__name__ and names == list(value.__annotations__):
                return _cut(entry[2], node)
    raise _not_found(value)


def _not_found(value: FunctionType | type) -> NotKept:
    return NotKept(f"the text of {value.__name__} is not to be found: define it in a cell, with def or class")


def _is_written(function: FunctionType) -> bool:
    """Whether somebody wrote it: `dataclass` makes methods, with no text or within its own module."""
    place = function.__code__.co_filename
    return place != dataclasses.__file__ and bool(linecache.getlines(place, dict(function.__globals__)))


def _parsed(lines: list[str]) -> list[ast.stmt]:
    try:
        return ast.parse("".join(lines)).body
    except SyntaxError:
        # A cell may hold magics: only the statement itself has to be Python.
        return _statements(lines)


def _cut(lines: list[str], node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return "".join(lines[first - 1 : node.end_lineno]).rstrip()


def _statements(lines: list[str]) -> list[ast.stmt]:
    """The definitions of a cell whose other lines need not be Python."""
    kept = (" ", "\t", "def ", "class ", "@", "async ")
    blank = [line if line.startswith(kept) else "\n" for line in lines]
    try:
        return ast.parse("".join(blank)).body
    except SyntaxError:
        return []


def _methods(value: type) -> Iterator[FunctionType]:
    for member in vars(value).values():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if isinstance(function, FunctionType) and function.__qualname__.startswith(f"{value.__name__}."):
            yield function


def _globals_used(text: str) -> list[str]:
    """The names that ``text`` looks up outside of itself, in order."""
    used: dict[str, None] = {}

    def walk(code: CodeType) -> None:
        for step in dis.get_instructions(code):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and isinstance(step.argval, str):
                used[step.argval] = None
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                walk(constant)

    walk(compile(text, "<part>", "exec", dont_inherit=True))
    return [name for name in used if not hasattr(builtins, name)]
