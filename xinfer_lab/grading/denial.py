"""Keep modules that hold the answer out of the reach of an answer while it is recorded.

In a notebook this is help, not a lock: a student who imports the answer is told at once what marking will say. The
lock is the sandbox, whose process starts with the same denial and never had the modules.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, FunctionType, ModuleType

__all__ = ["Denied", "DeniedModule", "denied_reference", "deny"]


class DeniedModule(ImportError):
    """An answer imports, or was built from, a module that holds the answer."""


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
def deny(names: Iterable[str]) -> Iterator[None]:
    """While the block runs, importing one of ``names`` or a module below it raises `DeniedModule`; afterwards all is
    as before."""
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
        sys.meta_path.remove(finder)
        sys.modules.update(hidden)
        for owner, child, module in attributes:
            setattr(owner, child, module)


def denied_reference(answer: object, names: Iterable[str]) -> str | None:
    """The first thing from a denied module that ``answer`` was built from (imported earlier, or itself), or None.

    An answer of several parts is a mapping by name. Looks at the names that the function and the functions it calls
    by name refer to, at its base classes and its methods.
    """
    denied = tuple(names)
    seen: set[int] = set()
    todo: list[tuple[str, object]] = [(getattr(answer, "__name__", "the answer"), answer)]
    while todo:
        name, thing = todo.pop()
        if id(thing) in seen or len(seen) > 2000:
            continue
        seen.add(id(thing))
        home = thing.__name__ if isinstance(thing, ModuleType) else getattr(thing, "__module__", None)
        if isinstance(home, str) and _covers(denied, home):
            return name if name == home else f"{name} (from {home})"
        if isinstance(thing, Mapping):
            todo += [(str(key), value) for key, value in thing.items()]
        elif isinstance(thing, FunctionType):
            todo += [(used, thing.__globals__[used]) for used in _names(thing.__code__) if used in thing.__globals__]
            cells = zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True)
            todo += [(free, cell.cell_contents) for free, cell in cells if _filled(cell)]
        elif isinstance(thing, type) and thing.__module__ == "__main__":
            todo += [(base.__name__, base) for base in thing.__mro__[1:-1]]
            todo += [(key, member) for key, member in vars(thing).items() if isinstance(member, FunctionType)]
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
