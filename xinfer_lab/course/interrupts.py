"""Ctrl-C, and Ctrl-C again while what the first one stopped is put in order."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupts", "leave", "one_interrupt", "sheltered"]

AGAIN = 5.0
"""Seconds after the first Ctrl-C in which others are taken for the same one."""

LONGEST = 5.0
"""Seconds that leaving may take."""


class Interrupts:
    """When the first Ctrl-C came; None where none did."""

    first: float | None = None


@contextmanager
def one_interrupt() -> Iterator[Interrupts]:
    """Within the block the first Ctrl-C raises `KeyboardInterrupt`, and those that follow it do nothing.

    Otherwise a second one breaks off the ending of processes that the first began, and their parent waits for them for
    ever. If it does not end within `AGAIN` seconds, the next Ctrl-C ends it. After the block others still do nothing,
    once there was one: then the process has to `leave`.
    """
    came = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield came
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if came.first is None:
            came.first = time.monotonic()
            raise KeyboardInterrupt
        if time.monotonic() - came.first > AGAIN:
            os._exit(130)

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield came
    finally:
        if came.first is None:
            signal.signal(signal.SIGINT, before)


def leave(status: int) -> int:
    """``status``, with which this process is about to end: within `LONGEST` seconds, whatever happens on the way out.

    On its way out Python takes away the handler that a further Ctrl-C needs, and joins the threads of executors whose
    processes were killed, which now and then wait for ever.
    """
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    last = threading.Timer(LONGEST, os._exit, (status,))
    last.daemon = True
    last.start()
    return status


@contextmanager
def sheltered() -> Iterator[None]:
    """Within the block a Ctrl-C waits, also for processes that are started in it, until they have a handler of their
    own.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
