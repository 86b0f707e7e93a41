"""Loads a part's file as a module of its own, and names the part when it fails: at once, or while it runs."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from xinfer_lab.device.errors import DeviceError
from xinfer_lab.grading.part import Part
from xinfer_lab.residency.errors import LayerOrderError, RequestError

__all__ = ["PartError", "asked_by", "blaming", "line_of_a_part", "load_part"]

_PREFIX = "my_engine_part_"
"""Modules of parts have names of their own, so that a part called like a library's module hides none."""


class PartError(RequestError):
    """A part of an engine cannot be used, or failed as it ran; the message names it."""


def load_part(part: Part, path: Path, text: str) -> Callable[..., Any]:
    """The function or class of ``part`` that ``text``, the content of ``path``, defines. Runs it.

    Raises `PartError` where it cannot be run, or does not take the calls that the machine makes.
    """
    try:
        code: Any = getattr(_run(path, text), part.code, None)
    except (Exception, SystemExit) as error:
        raise PartError(f"{path.name} cannot be imported: {_told(error)}.") from None
    if not callable(code):
        raise PartError(f"{path.name} defines no {part.code}.")
    for call in part.calls:
        _check_call(part, path, code, call)
    found: Callable[..., Any] = code
    return found


def _run(path: Path, text: str) -> ModuleType:
    name = f"{_PREFIX}{path.stem}"
    if name in sys.modules:
        raise ImportError("it imports itself, by way of another part")
    # Compiled here: a file that Python compiled and kept by its time may be older than a change within that second.
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    try:
        exec(compile(text, str(path), "exec", dont_inherit=True), vars(module))
    finally:
        del sys.modules[name]
    return module


def _check_call(part: Part, path: Path, code: Callable[..., Any], call: str) -> None:
    method, _, names = call.rstrip(")").partition("(")
    given: list[object] = [object() for name in names.split(",") if name.strip()]
    called: Any = code
    if method:
        called, given = getattr(code, method, None), [object(), *given]
        if not callable(called):
            raise PartError(f"{path.name}: {part.code} has no method {call}.")
    try:
        inspect.signature(called).bind(*given)
    except TypeError as error:
        what = f"{part.code}.{call}" if method else f"{part.code}{call}"
        raise PartError(f"{path.name} cannot be called as {what}: {error}.") from None
    except ValueError:  # a callable without a signature
        return


@contextmanager
def blaming(what: str) -> Iterator[None]:
    """Within it, an error of a part is a `PartError` that says which line of which part stopped ``what``.

    What a device or a model refuses stays as it is; `line_of_a_part` says where that was asked for.
    """
    try:
        yield
    except (DeviceError, RequestError, LayerOrderError):
        raise
    except (Exception, SystemExit) as error:
        line = line_of_a_part(error)
        where = f"your part stopped in {line}" if line else f"your engine's {what} stopped"
        raise PartError(f"{where}: {_told(error)}.") from error


def line_of_a_part(error: BaseException) -> str:
    """The innermost line of a part that ``error`` came through, as ``copy_engine.py, line 12``; '' if through none."""
    frames = list(traceback.walk_tb(error.__traceback__))
    for frame, line in reversed(frames):
        if str(frame.f_globals.get("__name__", "")).startswith(_PREFIX):
            return f"{Path(frame.f_code.co_filename).name}, line {line}"
    return ""


def asked_by(error: BaseException) -> str:
    """Which line of a part asked for what was refused, in brackets; '' where none did, or where the error says it."""
    line = "" if isinstance(error, PartError) else line_of_a_part(error)
    return f" (asked for by {line})" if line else ""


def _told(error: BaseException) -> str:
    said = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
