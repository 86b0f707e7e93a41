"""Stop an answer that never ends."""

from __future__ import annotations

import _thread
import gc
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["AnswerTimeout", "time_limit"]


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
    left = False

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
        if over.is_set():
            if left or _in_garbage_collection(frame):
                return  # there is nothing to stop any more, or the watcher asks again in a moment
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


def _in_garbage_collection(frame: FrameType | None) -> bool:
    """Whether ``frame`` belongs to a function that the garbage collector calls (hypothesis has one): what is raised
    there ends there.
    """
    called = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        if frame.f_code in called:
            return True
        frame = frame.f_back
    return False


def _interrupt_main_thread() -> None:
    """Raise KeyboardInterrupt in the main thread, which may be asleep: only a real signal wakes it on POSIX."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()
