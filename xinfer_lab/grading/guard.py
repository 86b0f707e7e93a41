"""Stop an answer that never ends, whatever becomes of the exception that stops it.

Python can only be stopped from within: a signal raises KeyboardInterrupt in the main thread. An answer may catch it,
and where Python lets objects go, collects garbage or calls back for a weak reference, nothing can pass it on. No list
of the places that swallow an interrupt is complete, so it is raised until the block is left: at once where Python
reports that it was swallowed; else with pauses, in which clean-up can finish; and at last at every step, so that no
loop and no call is left to go on with.

What ignores the signal, or never returns from a function written in C, is beyond this. Marking runs answers in a
process of their own, which is killed; in a notebook, the kernel has to be restarted.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Any

__all__ = ["AnswerTimeout", "time_limit"]

PAUSE = 1.0
"""Processor seconds from one interrupt to the next; five times as many on the clock."""
PAUSES = 2
"""How many pauses are made before every step is interrupted."""


class AnswerTimeout(Exception):
    """The answer used more processor time than a check allows, or slept far longer."""


class _Interrupt:
    """``_interrupt[signal.SIGINT]``, in the main thread: the signal is there, and looked at after the next statement.

    A call would not do: when it returns, Python looks for signals. When an item was looked up it does not, so the next
    statement can raise, and an answer that catches that is interrupted again.
    """

    __getitem__ = staticmethod(_thread.interrupt_main)


_interrupt = _Interrupt()


class time_limit:
    """Raise `AnswerTimeout` inside the block once this process spent ``cpu_seconds`` in it, or ``wall_seconds`` passed.

    By processor time, so that a loaded machine does not turn a right answer into a wrong one; the wall-clock limit is
    for what sleeps. Works in the main thread (where a notebook's cells run); elsewhere the block runs unguarded.
    """

    def __init__(self, cpu_seconds: float, wall_seconds: float = 120.0) -> None:
        self._cpu_seconds, self._wall_seconds = cpu_seconds, wall_seconds
        self._watcher: threading.Thread | None = None
        self._over = self._leaving = False
        self._interrupts = 0
        self._left, self._lock = threading.Event(), threading.Lock()

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._tracer, self._hook = sys.gettrace(), sys.unraisablehook
        sys.unraisablehook = self._on_unraisable
        # A process started in the background ignores SIGINT; here it has to arrive.
        self._handler = signal.signal(signal.SIGINT, self._on_signal)
        self._watcher = threading.Thread(target=self._watch, name="answer time limit", daemon=True)
        self._watcher.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving = True
        if self._watcher is None:
            return
        with self._lock:
            self._left.set()
        self._watcher.join()
        signal.signal(signal.SIGINT, self._handler)
        sys.unraisablehook = self._hook
        if self._interrupts > PAUSES:
            sys.settrace(self._tracer)  # who set another one could not clean up
        if self._over and isinstance(error, KeyboardInterrupt):
            stopped = AnswerTimeout(f"stopped after {self._cpu_seconds:g} s: the answer took too long")
            raise stopped.with_traceback(trace) from None

    def _watch(self) -> None:
        cpu, wall = time.process_time() + self._cpu_seconds, time.monotonic() + self._wall_seconds
        while not self._left.wait(0.05):
            if time.process_time() >= cpu or time.monotonic() >= wall:
                with self._lock:
                    if not self._left.is_set():
                        self._over = True
                        _interrupt_main_thread()
                cpu, wall = time.process_time() + PAUSE, time.monotonic() + 5 * PAUSE

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._over:
            if self._leaving or (frame is not None and frame.f_code is time_limit.__exit__.__code__):
                return  # there is nothing to stop any more
            self._interrupts += 1
            if self._interrupts > PAUSES:
                _interrupt[signal.SIGINT]
        raise KeyboardInterrupt

    def _on_unraisable(self, told: Any) -> None:
        if self._over and issubclass(told.exc_type, KeyboardInterrupt):
            self._interrupts -= 1  # it reached nobody
            _interrupt[signal.SIGINT]
        else:
            self._hook(told)


def _interrupt_main_thread() -> None:
    """Raise KeyboardInterrupt in the main thread, which may be asleep: only a real signal wakes it on POSIX."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()
