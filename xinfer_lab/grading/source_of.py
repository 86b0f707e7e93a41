"""The source of an answer as a module of its own: what its author wrote, and what that needs to be imported alone."""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from sys import modules
from types import CodeType, FunctionType, ModuleType
from typing import Any

from xinfer_lab.grading.written_text import NotKept, globals_of, text_of

__all__ = ["NotKept", "source_of"]


def source_of(answer: object) -> str:
    """A module that defines ``answer``, a function or class of a notebook: its text, the helpers of the notebook that
    it uses, constants, and imports.

    Raises `NotKept` for anything else, and for an answer that uses what only the notebook's memory holds.
    """
    written = inspect.unwrap(answer) if callable(answer) else answer
    if not isinstance(written, (FunctionType, type)):
        raise NotKept(f"a function or a class can be kept, not a {type(answer).__name__}")
    collected = _Collected()
    collected.add_definition(written, {})
    blocks = ["\n".join(sorted(collected.imports)), "\n".join(collected.constants), *collected.definitions]
    text = "\n\n\n".join(block for block in blocks if block) + "\n"
    _try(text)
    return text


class _Collected:
    """What a module needs, in an order in which it can be executed."""

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.constants: list[str] = []
        self.definitions: list[str] = []
        self._seen: set[str] = set()

    def add(self, name: str, value: object, around: Mapping[str, Any]) -> None:
        """Whatever makes ``name`` mean ``value``, among the names ``around`` its user."""
        if name in self._seen:
            return
        self._seen.add(name)
        own = str(getattr(value, "__name__", name))
        written = inspect.unwrap(value) if callable(value) else value
        if isinstance(value, ModuleType):
            self._add_module(name, value)
        elif (place := _importable(value)) is not None:
            self.imports.add(f"from {place} import {own}" + ("" if own == name else f" as {name}"))
        elif isinstance(written, (FunctionType, type)):
            self._seen.add(own)
            self.add_definition(written, around)
            if own != name:
                self.definitions.append(f"{name} = {own}")
        elif (found := _plain(value)) is not None:
            self.imports |= found[1]
            self.constants.append(f"{name} = {found[0]}")
        else:
            raise NotKept(
                f"it uses {name}, a {type(value).__name__} that only the notebook holds: pass it as an argument, or "
                "make it inside the function"
            )

    def add_definition(self, value: FunctionType | type, around: Mapping[str, Any]) -> None:
        """The text of ``value``, below what it needs. A name that its own module lacks is looked for ``around``."""
        self._seen.add(value.__name__)
        text, names = text_of(value), {**around, **globals_of(value)}
        for used in _globals_used(text):
            if used in names:
                self.add(used, names[used], names)
        self.definitions.append(text)

    def _add_module(self, name: str, value: ModuleType) -> None:
        if not _is_installed(value):
            raise NotKept(
                f"it uses {name}, a file of your own beside the notebook: import the functions themselves, with "
                f"from {value.__name__} import ..."
            )
        self.imports.add(f"import {value.__name__}" + ("" if value.__name__ == name else f" as {name}"))


def _importable(value: object) -> str | None:
    """The module that ``value`` can be imported from by its own name, None for what the student wrote: in a notebook,
    or in a file beside it, which is not there for a program elsewhere."""
    home = getattr(value, "__module__", None)
    name = getattr(value, "__name__", None)
    if not isinstance(home, str) or not isinstance(name, str) or home == "__main__":
        return None
    module = modules.get(home)
    if module is None or getattr(module, name, None) is not value or not _is_installed(module):
        return None
    return home


def _is_installed(module: ModuleType) -> bool:
    """Whether ``module`` is there for every program: Python's own, an installed one, or this package's."""
    top = module.__name__.partition(".")[0]
    file = getattr(modules.get(top, module), "__file__", None)
    if file is None or top == __name__.partition(".")[0]:
        return True
    places = [Path(place).resolve() for place in set(sysconfig.get_paths().values())]
    return any(Path(file).resolve().is_relative_to(place) for place in places)


def _plain(value: object) -> tuple[str, set[str]] | None:
    """``value`` written out, and the imports that this needs; None where it cannot be written."""
    text = repr(value)
    try:
        if ast.literal_eval(text) == value:
            return text, set()
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    torch = modules.get("torch")
    try:
        # A table by dtype, say: {torch.float32: 4}.
        if "torch." in text and eval(text, {"__builtins__": {}, "torch": torch}) == value:
            return text, {"import torch"}
    except Exception:
        pass
    return None


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


def _try(text: str) -> None:
    """Raise `NotKept` where ``text`` cannot be executed alone."""
    module = ModuleType("a_part_on_trial")
    # Where its classes are looked for while they are made.
    modules[module.__name__] = module
    try:
        text.encode()
        exec(compile(text, "<part>", "exec", dont_inherit=True), vars(module))
    except Exception as error:
        raise NotKept(f"its text cannot be run on its own: {type(error).__name__}: {error}") from None
    finally:
        del modules[module.__name__]
