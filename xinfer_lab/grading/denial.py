"""What an answer may import: what its lab allows, and of that nothing that holds the answer.

A list of what holds answers is never complete: libraries have readers and policies of their own. So each lab names
what its answers may import (``allowed.py`` in its folder); the denied modules of a piece are what is taken away from
that. In a notebook both are help, not a lock: whoever imports something else is told at once what marking will say. The
lock is the sandbox. Its process starts with the same rules, and never had the denied modules, nor other libraries than
those that the package itself runs on.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, FunctionType, ModuleType
from typing import Any

__all__ = ["Allowed", "Denied", "DeniedModule", "NotAllowed", "denied_reference", "deny"]


STANDARD = (
    "__future__", "abc", "array", "bisect", "cmath", "collections", "contextlib", "copy", "dataclasses",
    "decimal", "enum", "fractions", "functools", "heapq", "io", "itertools", "json", "math", "numbers",
    "operator", "pathlib", "pprint", "queue", "random", "re", "statistics", "string", "struct", "tempfile",
    "textwrap", "time", "types", "typing", "unicodedata", "warnings", "weakref",
)  # fmt: skip
"""Python's own modules for numbers, data and text. None of them reaches another module or the interpreter's inside."""

LIBRARIES = ("numpy", "torch")

PARTS = (
    *(f"numpy.{part}" for part in ("ctypeslib", "distutils", "f2py", "testing")),
    *(
        f"torch.{part}"
        for part in ("distributed", "export", "hub", "jit", "multiprocessing", "onnx", "optim", "package")
    ),
    *(f"torch.{part}" for part in ("profiler", "testing", "utils.cpp_extension", "utils.data")),
)
"""Parts of these that no answer needs: they start processes, load files, or reach for other hosts."""


class DeniedModule(ImportError):
    """An answer imports, or was built from, a module that holds the answer."""


class NotAllowed(DeniedModule):
    """An answer imports, or was built from, a module that is not among those that its lab allows."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """The modules ``names``, with all below them, of a lab of their own and of every lab."""

    names: tuple[str, ...]

    def __contains__(self, module: str) -> bool:
        names = (*STANDARD, *LIBRARIES, *self.names, "__main__", "builtins")
        if _covers(PARTS, module):
            return False
        return _covers(names, module) or _covers(names, module.lstrip("_"))  # _struct is the inside of struct

    def leads_to(self, module: str) -> bool:
        """Whether ``module`` is a package above one of them."""
        return any(name.startswith(f"{module}.") for name in self.names)

    def refusal(self, module: str) -> NotAllowed:
        """What to raise where ``module`` is asked for."""
        own = ", ".join(name for name in self.names if name.count(".") < 3)
        return NotAllowed(
            f"{module} may not be used in an answer: marking has Python's modules for numbers, data and text "
            f"({', '.join(STANDARD[1:])}), {', '.join(LIBRARIES)}, and {own}"
        )

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Python's ``__import__``, which refuses what a notebook's own code asks for and this does not contain."""
        return _import(self, *arguments, **named)


def _import(
    allowed: Allowed, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> Any:
    own = not level and globals is not None and globals.get("__name__") == "__main__"
    if own and name not in allowed and not allowed.leads_to(name):
        raise allowed.refusal(name)
    found = _PYTHONS(name, globals, locals, fromlist, level)
    for item in fromlist or () if own and name not in allowed else ():
        part = getattr(found, item, None)
        if isinstance(part, ModuleType) and part.__name__ not in allowed and not allowed.leads_to(part.__name__):
            raise allowed.refusal(part.__name__)
    return found


_PYTHONS = builtins.__import__


def _covers(denied: Iterable[str], name: str) -> bool:
    # Asked of every module that is loaded, for every check: `startswith` with a tuple is one call.
    return f"{name}.".startswith(tuple(f"{module}." for module in denied))


class Denied(MetaPathFinder):
    """A finder that refuses the modules ``names`` and all below them."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)

    def find_spec(self, fullname: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Raise `DeniedModule` for a denied name; leave every other to the next finder."""
        if _covers(self.names, fullname):
            raise DeniedModule(f"{fullname} may not be used in this answer: it holds what the piece asks you to write")
        return None


@contextmanager
def deny(names: Iterable[str], allowed: Allowed | None = None) -> Iterator[None]:
    """While the block runs, importing one of ``names`` or a module below it raises `DeniedModule`, and a notebook's own
    code `NotAllowed` for what is not ``allowed``; afterwards all is as before."""
    before = builtins.__import__
    if allowed is not None:
        builtins.__import__ = allowed
    finder = Denied(names)
    hidden = {name: module for name, module in sys.modules.items() if _covers(finder.names, name)}
    attributes = []
    for name, module in hidden.items():
        parent, _, child = name.rpartition(".")
        owner = sys.modules.get(parent)
        if parent and owner is not None and owner.__dict__.get(child) is module:
            attributes.append((owner, child, module))
    for name in hidden:
        del sys.modules[name]
    for owner, child, _ in attributes:
        delattr(owner, child)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        builtins.__import__ = before
        sys.meta_path.remove(finder)
        sys.modules.update(hidden)
        for owner, child, module in attributes:
            setattr(owner, child, module)


def denied_reference(answer: object, names: Iterable[str], allowed: Allowed | None = None) -> DeniedModule | None:
    """What to raise for the first thing that ``answer`` was built from (imported earlier, or itself) that comes from a
    denied module, or from one that is not ``allowed``; None where there is none.

    An answer of several parts is a mapping by name. Looks at the names that the function and the functions it calls
    by name refer to, at its base classes and its methods.
    """
    denied = tuple(names)
    seen: set[int] = set()
    # ``own``: named by the notebook's own code. What a library's function uses in turn is the library's.
    todo: list[tuple[str, object, bool]] = [(getattr(answer, "__name__", "the answer"), answer, True)]
    while todo:
        name, thing, own = todo.pop()
        if id(thing) in seen or len(seen) > 2000:
            continue
        seen.add(id(thing))
        home = thing.__name__ if isinstance(thing, ModuleType) else getattr(thing, "__module__", None)
        if isinstance(home, str):
            what = name if name == home else f"{name} (from {home})"
            if _covers(denied, home):
                return DeniedModule(f"it uses {what}, which holds what the piece asks you to write")
            if own and allowed is not None and home not in allowed and not allowed.leads_to(home):
                return allowed.refusal(what)
        if isinstance(thing, Mapping):
            todo += [(str(key), value, own) for key, value in thing.items()]
        elif isinstance(thing, FunctionType):
            own = own and thing.__globals__.get("__name__") == "__main__"
            used = [name for name in _names(thing.__code__) if name in thing.__globals__]
            todo += [(name, thing.__globals__[name], own) for name in used]
            cells = zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True)
            todo += [(free, cell.cell_contents, own) for free, cell in cells if _filled(cell)]
        elif isinstance(thing, type) and thing.__module__ == "__main__":
            todo += [(base.__name__, base, base in thing.__bases__) for base in thing.__mro__[1:-1]]
            todo += [(key, member, True) for key, member in vars(thing).items() if isinstance(member, FunctionType)]
    return None


def _names(code: CodeType) -> list[str]:
    inner = [name for const in code.co_consts if isinstance(const, CodeType) for name in _names(const)]
    return [*code.co_names, *inner]


def _filled(cell: object) -> bool:
    try:
        cell.cell_contents  # type: ignore[attr-defined]  # noqa: B018
    except ValueError:
        return False
    return True
