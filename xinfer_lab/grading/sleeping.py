"""When a program sleeps: a wait of the host that no command stream shows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FunctionType
from typing import Any

__all__ = ["on_sleep"]


@contextmanager
def on_sleep(answer: object, tell: Callable[[], object]) -> Iterator[None]:
    """While the block runs, ``tell()`` is called before each `time.sleep`, whatever name ``answer`` has for it.

    Python tells of a sleep only from 3.13 on, by an audit event, so the function is exchanged: in its module, and
    where the cells of the answer have imported it by name. Threads that ran before are none of the answer's: a notebook
    kernel has one that sleeps a second at a time.
    """
    sleep = time.sleep
    others = set(threading.enumerate()) - {threading.current_thread()}

    def told(seconds: float, /) -> None:
        if threading.current_thread() not in others:
            tell()
        sleep(seconds)

    places: list[dict[str, Any]] = [vars(time), *_namespaces(answer)]
    names = [(place, name) for place in places for name, value in list(place.items()) if value is sleep]
    for place, name in names:
        place[name] = told
    try:
        yield
    finally:
        for place, name in names:
            if place.get(name) is told:
                place[name] = sleep


def _namespaces(answer: object) -> list[dict[str, Any]]:
    """The globals of the functions that ``answer`` consists of, each once."""
    found: dict[int, dict[str, Any]] = {}
    for part in answer.values() if isinstance(answer, Mapping) else (answer,):
        for member in vars(part).values() if isinstance(part, type) else (part,):
            if isinstance(member, FunctionType):
                found[id(member.__globals__)] = member.__globals__
    return list(found.values())
