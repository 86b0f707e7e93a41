"""Stop an answer that never ends."""

from __future__ import annotations

import _thread
import _weakrefset
import gc
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["AnswerTimeout", "time_limit"]

PATIENCE = 40
"""How often an interrupt is put off, twentieths of a second: an answer's own ``__del__`` may not come to an end."""
_CALLED_BACK = (weakref.__file__, _weakrefset.__file__)


class AnswerTimeout(Exception):
    """The answer used more processor time than a check allows, or slept far longer."""


@contextmanager
def time_limit(cpu_seconds: float, wall_seconds: float = 120.0) -> Iterator[None]:
    """Raise `AnswerTimeout` inside the block once this process spent ``cpu_seconds`` in it, or ``wall_seconds`` passed.

    By processor time, so that a loaded machine does not turn a right answer into a wrong one; the wall-clock limit is
    for what sleeps. Works in the main thread (where a notebook's cells run); elsewhere the block runs unguarded.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    done, over, raised, lock = threading.Event(), threading.Event(), threading.Event(), threading.Lock()
    left, waited = False, 0

    def stop_when_over() -> None:
        cpu, wall = time.process_time() + cpu_seconds, time.monotonic() + wall_seconds
        while not done.wait(0.05):
            if raised.is_set():
                # What cleans up behind the interrupt may call the answer again, which may not come to an end either.
                raised.clear()
                cpu, wall = time.process_time() + 1.0, time.monotonic() + 5.0
            if time.process_time() >= cpu or time.monotonic() >= wall:
                with lock:
                    if not done.is_set():
                        over.set()
                        _interrupt_main_thread()

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal waited
        if over.is_set():
            if left or raised.is_set():
                return  # there is nothing to stop any more, or it was asked twice
            if waited < PATIENCE and _is_swallowed(frame):
                waited += 1
                return  # the watcher asks again in a moment
            waited = 0
            raised.set()
        signal.default_int_handler(number, frame)

    watcher = threading.Thread(target=stop_when_over, name="answer time limit", daemon=True)
    # A process started in the background ignores SIGINT; here it has to arrive.
    before = signal.signal(signal.SIGINT, interrupt)
    watcher.start()
    try:
        yield
    except KeyboardInterrupt as error:
        if not over.is_set():
            raise
        stopped = AnswerTimeout(f"stopped after {cpu_seconds:g} s: the answer does not come to an end")
        raise stopped.with_traceback(error.__traceback__) from None
    finally:
        left = True
        with lock:
            done.set()
        watcher.join()
        signal.signal(signal.SIGINT, before)


def _is_swallowed(frame: FrameType | None) -> bool:
    """Whether what is raised in ``frame`` ends there: in what Python calls while it collects garbage or lets an object
    go, where it cannot pass an exception on.
    """
    called = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        code = frame.f_code
        if code in called or code.co_name == "__del__" or code.co_filename in _CALLED_BACK:
            return True
        frame = frame.f_back
    return False


def _interrupt_main_thread() -> None:
    """Raise KeyboardInterrupt in the main thread, which may be asleep: only a real signal wakes it on POSIX."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()
