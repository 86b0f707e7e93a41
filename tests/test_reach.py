"""A search over everything that an answer may import: nothing there answers a piece by itself."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import select
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from xinfer_lab.course.confine import confine
from xinfer_lab.grading.catalog import find_piece, pieces_of
from xinfer_lab.grading.denial import STANDARD, Allowed, _covers, deny
from xinfer_lab.grading.guard import time_limit
from xinfer_lab.grading.judges import judge_of
from xinfer_lab.grading.question import Question
from xinfer_lab.grading.rooms import ALWAYS_DENIED, LABS, allowed_in
from xinfer_lab.grading.values import decode, encode
from xinfer_lab.grading.verify_values import Outcome, Refuses, _judge

OPERATORS = ("operator.mod", "operator.imod", "numpy.fmod", "numpy.mod")
"""The % of Python and NumPy. It is Lab 3's `layer_of`, and whoever writes it has answered that."""

LONGEST = 5.0
"""Seconds after which a call counts as one that waits for ever."""


def modules(allowed: Allowed, denied: Sequence[str]) -> list[ModuleType]:
    """What is importable: all that is loaded, and the package's own allowed modules."""
    for name in (*STANDARD, "numpy", "torch", *allowed.names):
        if _covers(denied, name):
            continue
        found = importlib.import_module(name)
        if name.startswith("xinfer_lab"):
            for _, inner, _ in pkgutil.walk_packages(getattr(found, "__path__", ()), f"{name}."):
                if not _covers(denied, inner) and not inner.endswith(("__main__", "_triton", ".cuda")):
                    with warnings.catch_warnings(), deny(denied):
                        warnings.simplefilter("ignore")
                        try:
                            importlib.import_module(inner)
                        except ImportError:
                            continue
    public = [(name, module) for name, module in list(sys.modules.items()) if "._" not in name and name[0] != "_"]
    return [module for name, module in public if name in allowed and not _covers(denied, name)]


def callables(allowed: Allowed, denied: Sequence[str]) -> dict[str, Callable[..., Any]]:
    """Functions, classes, and functions in classes, each under one of its names."""
    found: dict[int, tuple[str, Any]] = {}
    for module in modules(allowed, denied):
        for name, thing in list(vars(module).items()):
            home = getattr(thing, "__module__", None)
            if (
                isinstance(thing, ModuleType)
                or not callable(thing)
                or (isinstance(home, str) and _covers(denied, home))
            ):
                continue
            found.setdefault(id(thing), (f"{module.__name__}.{name}", thing))
            if isinstance(thing, type) and str(home).startswith("xinfer_lab"):
                for inner, member in vars(thing).items():
                    if inspect.isfunction(member):
                        found.setdefault(id(member), (f"{module.__name__}.{name}.{inner}", member))
    return dict(found.values())


def fits(thing: Any, arguments: int) -> bool:
    """Whether ``thing`` may be called with so many arguments."""
    try:
        inspect.signature(thing).bind(*range(arguments))
    except TypeError:
        return False
    except (ValueError, AttributeError, RecursionError):
        return True  # it does not say
    return True


def passes(piece: Any, thing: Any, cases: Sequence[Any]) -> bool:
    """Whether ``thing`` is a right answer."""
    try:
        with time_limit(5.0):
            return bool(piece.verify(cases, json.loads(json.dumps(piece.record(thing, cases)))).passed)
    except Exception:
        return False


def likely(piece: Any, thing: Any, cases: Sequence[Any]) -> bool:
    """Whether ``thing`` gets the first case right that is not to be refused: asked as a question asks, without the
    recording's care, which costs much more than most of these calls."""
    if not isinstance(piece, Question):
        return passes(replace(piece, cpu_seconds=1.0), thing, cases[:1])
    judge = judge_of(piece.name)
    first = next((case for case in cases if not isinstance(judge.truth(case.inputs), Refuses)), None)
    if first is None:
        return passes(piece, thing, cases[:1])
    observed: dict[str, Any] = {}
    try:
        with time_limit(1.0):
            value = encode(piece.ask(thing, decode(encode(dict(first.inputs))), observed))
        outcome = Outcome(value=decode(value), observed=decode(encode(observed)))
        return _judge(judge, first, outcome, "line 1: def answer") is None
    except (Exception, SystemExit):
        return False


def try_all(piece: Any, things: Sequence[Any], start: int, say: Callable[[str], object]) -> None:
    """Say which of ``things`` is taken up, from number ``start`` on, and which of them answers ``piece``."""
    cases = piece.draw(7)
    for number in range(start, len(things)):
        say(f"{number}\n")
        if likely(piece, things[number], cases) and passes(piece, things[number], cases):
            say(f"{number} answers\n")
    say("done\n")


def _tell(descriptor: int, line: str) -> None:
    os.write(descriptor, line.encode())


def search(piece: Any, named: dict[str, Any], folder: Path) -> list[str]:
    """The names of what answers ``piece``. What ends its process, or waits for ever, is passed over."""
    names, start, found = list(named), 0, list[str]()
    while start < len(names):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.chdir(folder)
                null = os.open(os.devnull, os.O_RDWR)
                for descriptor in (0, 1, 2):
                    os.dup2(null, descriptor)
                confine(drop=False, cpu=600, threads=10_000)
                try_all(piece, list(named.values()), start, partial(_tell, writing))
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            told = b""
            while select.select([pipe], [], [], LONGEST)[0] and (part := pipe.read(65536)):
                told += part
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        lines = told.decode().splitlines()
        found += [names[int(line.split()[0])] for line in lines if line.endswith("answers")]
        if "done" in lines:
            return found
        start = 1 + max((int(line.split()[0]) for line in lines), default=start)
    return found


@pytest.mark.slow
@pytest.mark.search
@pytest.mark.filterwarnings("ignore")  # of what libraries mean to take away
@pytest.mark.skipif(sys.platform == "win32", reason="each chunk is a fork")
@pytest.mark.parametrize("lab", LABS)
def test_nothing_that_an_answer_may_import_answers_a_piece(lab: str, tmp_path: Path) -> None:
    found: dict[str, list[str]] = {}
    for piece in pieces_of(lab):
        if piece.name.split(".")[1].startswith(("predict", "explain")):
            continue
        allowed = allowed_in(piece.name)
        assert allowed is not None
        named = callables(allowed, (*piece.denied_modules, *ALWAYS_DENIED))
        if isinstance(piece, Question):
            arguments = len(piece.draw(7)[0].inputs)
            named = {
                name: thing for name, thing in named.items() if any(fits(thing, n) for n in range(1, arguments + 1))
            }
        else:
            named = {name: thing for name, thing in named.items() if name.startswith("xinfer_lab")}
        hits = [name for name in search(piece, named, tmp_path) if name not in OPERATORS]
        if hits:
            found[piece.name] = hits
    assert found == {}


def test_the_search_finds_an_answer_among_what_ends_its_process(tmp_path: Path) -> None:
    own: dict[str, Any] = {"__name__": "__main__"}
    exec("def layer_of(step, layers):\n    return step % layers", own)
    named = {"exits": os._exit, "answers": own["layer_of"], "does not": max}
    assert search(find_piece("lab3.layer_of"), named, tmp_path) == ["answers"]
