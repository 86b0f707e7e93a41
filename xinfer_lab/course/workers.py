"""Where the jobs of a class run: processes of this machine, as `concurrent.futures` has them.

`xinfer_lab.course.cluster` has the same for Dask.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil

from xinfer_lab.course.interrupts import sheltered

__all__ = ["LocalProcesses", "Workers", "cores", "local_workers"]

MEMORY_OF_A_JOB = 4 * 2**30
"""Bytes that one job may come to take before it is stopped; no more jobs run at once than memory holds."""


@dataclass(frozen=True, slots=True)
class Workers:
    """``executor`` takes jobs, ``capacity`` at a time. An exception in ``lost`` means that a worker went away with its
    job, which is then to be submitted again. ``words`` say where the jobs run. ``check`` raises `NoCluster` where jobs
    would wait for ever.
    """

    executor: Executor
    capacity: Callable[[], int]
    lost: tuple[type[BaseException], ...]
    words: str
    check: Callable[[], None] = lambda: None


def cores() -> int:
    """Cores that this process may use."""
    count = getattr(os, "process_cpu_count", os.cpu_count)() or 1
    if hasattr(os, "sched_getaffinity"):
        count = min(count, len(os.sched_getaffinity(0)))
    return count


@contextmanager
def local_workers(jobs: int | None) -> Iterator[Workers]:
    """``jobs`` processes of this machine; by default one a core, as far as memory holds a job's limit for each.

    When the block is left by an exception, what runs is ended at once.
    """
    wanted = jobs
    if wanted is None:
        room = max(1, psutil.virtual_memory().total // MEMORY_OF_A_JOB)
        wanted = min(cores(), room)
    words = f"{wanted} job{'s' if wanted > 1 else ''} at a time"
    if jobs is None and wanted < cores():
        words += f", since there is memory for no more (of {cores()} cores; --jobs N to have it otherwise)"
    executor = LocalProcesses(wanted)
    try:
        yield Workers(executor, lambda: wanted, (BrokenExecutor, CancelledError), words)
    except BaseException:
        executor.kill()
        raise
    else:
        executor.shutdown()


class LocalProcesses(Executor):
    """Processes that take one job after another, each of them alone with its job: one that dies takes no other along,
    and is replaced.
    """

    def __init__(self, processes: int) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._others = {process.pid for process in multiprocessing.active_children()}
        self._pools = [self._pool() for _ in range(processes)]
        self._last: list[Future[Any] | None] = [None] * processes
        self._closed = False

    def _pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, mp_context=self._context, initializer=_begin)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Hand ``fn`` to a process that has nothing to do, else behind what one is doing."""
        if self._closed:
            raise RuntimeError("no jobs are taken any more")
        with sheltered():
            return self._submit(fn, *args, **kwargs)

    def _submit(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
        free = [place for place, future in enumerate(self._last) if future is None or future.done()]
        place = free[0] if free else 0
        try:
            future = self._pools[place].submit(fn, *args, **kwargs)
        except BrokenExecutor:
            self._pools[place].shutdown(wait=False)
            self._pools[place] = self._pool()
            future = self._pools[place].submit(fn, *args, **kwargs)
        self._last[place] = future
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more jobs; with ``wait`` block until what runs is done."""
        self._closed = True
        for pool in self._pools:
            pool.shutdown(wait=wait, cancel_futures=cancel_futures)

    def kill(self) -> None:
        """End all processes at once, with what they run."""
        self._closed = True
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            if process.pid not in self._others:
                _end(process.pid)


def _end(pid: int | None) -> None:
    """Kill a process with all below it."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        below = process.children(recursive=True)
        process.kill()
        for child in below:
            with contextlib.suppress(psutil.Error):
                child.kill()


def _begin() -> None:
    """What a process does before its first job."""
    # Ctrl-C is for the process that writes marks; it ends the others. A handler, since to ignore would be inherited by
    # what students' code runs in.
    signal.signal(signal.SIGINT, lambda number, frame: None)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_leave_with_parent, name="leave with parent", daemon=True).start()


def _leave_with_parent() -> None:
    """A process whose parent was killed must not go on for nobody."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    parent.join()
    below = psutil.Process().children(recursive=True)
    for child in below:
        with contextlib.suppress(psutil.Error):
            child.kill()
    os._exit(1)
