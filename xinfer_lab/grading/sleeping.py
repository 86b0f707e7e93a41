"""When a program sleeps, or waits for something that is no fence: a wait of the host that no command stream shows."""

from __future__ import annotations

import queue
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import FrameType, FunctionType
from typing import Any

__all__ = ["on_sleep"]


@contextmanager
def on_sleep(answer: object, tell: Callable[[], object]) -> Iterator[None]:
    """While the block runs, ``tell()`` is called before each wait for time, for a file, or for another thread, whatever
    name ``answer`` has for it.

    Python tells of a sleep only from 3.13 on, by an audit event, so what waits is exchanged: in its module, and where
    the cells of the answer have imported it by name. All that `threading` waits for (an event, a semaphore, a full
    queue) ends in `Condition.wait`; `SimpleQueue` is written in C, and waits by itself.
    Threads that are there already do not count: a notebook's kernel has one that sleeps and looks, again and again,
    whether its server is alive.
    """
    others = {*threading.enumerate()} - {threading.current_thread()}

    def told(wait: Callable[..., Any]) -> Callable[..., Any]:
        def waits(*arguments: Any, **named: Any) -> Any:
            if threading.current_thread() not in others and not _starts_a_thread(sys._getframe(1)):
                tell()
            return wait(*arguments, **named)

        return waits

    class SimpleQueue(queue.SimpleQueue[Any]):
        get = told(queue.SimpleQueue.get)

    exchanged = [(time.sleep, told(time.sleep)), (select.select, told(select.select)), (queue.SimpleQueue, SimpleQueue)]
    with ExitStack() as stack:
        for place in (vars(time), vars(select), vars(queue), *_namespaces(answer)):
            for wait, other in exchanged:
                stack.enter_context(_exchanged(place, wait, other))
        condition = threading.Condition.wait
        stack.callback(setattr, threading.Condition, "wait", condition)
        threading.Condition.wait = told(condition)  # type: ignore[method-assign]
        yield


def _starts_a_thread(frame: FrameType | None) -> bool:
    """Whether `Event.wait` in ``frame`` waits for a new thread to begin, which takes no time: Python's own doing."""
    return frame is not None and frame.f_back is not None and frame.f_back.f_code is threading.Thread.start.__code__


@contextmanager
def _exchanged(place: dict[str, Any], value: object, other: object) -> Iterator[None]:
    """``other`` under every name that ``place`` has for ``value``."""
    names = [name for name, held in list(place.items()) if held is value]
    for name in names:
        place[name] = other
    try:
        yield
    finally:
        for name in names:
            if place.get(name) is other:
                place[name] = value


def _namespaces(answer: object) -> list[dict[str, Any]]:
    """The globals of the functions that ``answer`` consists of, each once."""
    found: dict[int, dict[str, Any]] = {}
    for part in answer.values() if isinstance(answer, Mapping) else (answer,):
        for member in vars(part).values() if isinstance(part, type) else (part,):
            if isinstance(member, FunctionType):
                found[id(member.__globals__)] = member.__globals__
    return list(found.values())
