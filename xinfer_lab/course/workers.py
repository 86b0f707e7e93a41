"""Where the jobs of a class run: processes of this machine or a Dask cluster, both as `concurrent.futures` has them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil

__all__ = ["LocalProcesses", "NoCluster", "Workers", "cores", "dask_workers", "local_workers"]

MEMORY_OF_A_JOB = 4 * 2**30
"""Bytes that one job may come to take before it is stopped; no more jobs run at once than memory holds."""

ANSWER = 20.0
"""Seconds in which a scheduler has to answer."""


class NoCluster(RuntimeError):
    """The cluster that was asked for cannot be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Workers:
    """``executor`` takes jobs, ``capacity`` at a time. An exception in ``lost`` means that a worker went away with its
    job, which is then to be submitted again. ``words`` say where the jobs run.
    """

    executor: Executor
    capacity: Callable[[], int]
    lost: tuple[type[BaseException], ...]
    words: str


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


@contextmanager
def dask_workers(address: str, jobs: int | None = None) -> Iterator[Workers]:
    """The workers of the Dask scheduler at ``address``, as many jobs at a time as they have threads, or ``jobs``.

    Raises `NoCluster` where there is none, and where a worker has another version of this package or of Python.
    """
    try:
        from distributed import Client, KilledWorker
    except ImportError:
        raise NoCluster("--scheduler needs Dask: python -m pip install 'xinfer-lab[cluster]'") from None
    from xinfer_lab.course.job import close_markers

    try:
        client = Client(address, timeout=ANSWER, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise NoCluster(f"no Dask scheduler answers at {address}: {error}") from None

    def capacity() -> int:
        threads: int = sum(client.nthreads().values())
        return max(1, threads if jobs is None else min(jobs, threads))

    try:
        try:
            _same_everywhere(client.run(_versions))
        except ImportError as error:
            raise NoCluster(f"a worker of {address} has no xinfer-lab ({error}); install it there") from None
        words = f"{sum(client.nthreads().values())} jobs at a time on {len(client.nthreads())} workers of {address}"
        executor = client.get_executor(pure=False, retries=0)
        yield Workers(executor, capacity, (KilledWorker, CancelledError), words)
        client.run(close_markers)
    finally:
        client.close()


def _versions() -> tuple[str, str]:
    from xinfer_lab.course.package_view import PACKAGE, fingerprint

    return f"{sys.version_info[0]}.{sys.version_info[1]}", fingerprint(PACKAGE)


def _same_everywhere(found: dict[str, tuple[str, str]]) -> None:
    here = _versions()
    for worker, there in found.items():
        if there[0] != here[0]:
            raise NoCluster(f"the worker {worker} runs Python {there[0]}, this machine {here[0]}; install the same")
        if there[1] != here[1]:
            raise NoCluster(f"the worker {worker} has another version of xinfer-lab; install the same")
