"""Jobs of a class on a Dask cluster, and one sentence where the cluster is not what it should be."""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from xinfer_lab.course.workers import Workers

__all__ = ["NoCluster", "dask_workers"]

ANSWER = 20.0
"""Seconds in which a scheduler has to answer."""

PATIENCE = 10.0
"""Seconds for which a run waits for a scheduler, or for a worker, that was there and is not any more."""

_ADDRESS = re.compile(r"(?:(?P<scheme>\w+)://)?(?P<host>\[[^\]]+\]|[^:/\s]+)(?::(?P<port>\d{1,5}))?/?")


class NoCluster(RuntimeError):
    """The cluster that was asked for cannot be used; the message says why and what to do."""


@contextmanager
def dask_workers(address: str, jobs: int | None = None) -> Iterator[Workers]:
    """The workers of the Dask scheduler at ``address``, as many jobs at a time as they have threads, or ``jobs``.

    Raises `NoCluster` where there is none, where it has no workers, and where a worker has another version of this
    package or of Python.
    """
    try:
        from distributed import Client, KilledWorker
    except ImportError:
        raise NoCluster("--scheduler needs Dask: python -m pip install 'xinfer-lab[cluster]'") from None
    from xinfer_lab.course.job import close_markers

    _understood(address)
    with _silence():
        client = _connected(Client, address)
        watch = _Watch(client, address, jobs)
        try:
            if not watch.threads():
                raise NoCluster(f"the scheduler at {address} has no workers; start some: dask worker {address}")
            try:
                _same_everywhere(client.run(_versions))
            except ImportError as error:
                raise NoCluster(f"a worker of {address} has no xinfer-lab ({error}); install it there") from None
            words = f"{watch.threads()} jobs at a time on {len(client.nthreads())} workers of {address}"
            executor = client.get_executor(pure=False, retries=0)
            yield Workers(executor, watch.capacity, (KilledWorker, CancelledError), words, watch.check)
            with contextlib.suppress(Exception):  # all is stored; what the workers keep is theirs to end
                client.run(close_markers)
        finally:
            with contextlib.suppress(Exception):
                client.close(timeout=2)


class _Watch:
    """Whether scheduler and workers are there. Asked often; what is missing is waited for a little, then told."""

    def __init__(self, client: Any, address: str, jobs: int | None) -> None:
        self._client, self._address, self._jobs = client, address, jobs
        self._well = time.monotonic()

    def threads(self) -> int:
        """Threads of all workers; none where the scheduler does not answer."""
        if self._client.status != "running":
            return 0
        try:
            return sum(self._client.nthreads().values())
        except (OSError, RuntimeError, ValueError, TimeoutError, CancelledError):
            return 0

    def capacity(self) -> int:
        """Jobs that may be under way at once."""
        threads = self.threads()
        return max(1, threads if self._jobs is None else min(self._jobs, threads))

    def check(self) -> None:
        """Raise `NoCluster` where nothing has been able to run for `PATIENCE` seconds."""
        if self.threads():
            self._well = time.monotonic()
        elif time.monotonic() - self._well > PATIENCE:
            what = "has no workers any more" if self._client.status == "running" else "does not answer any more"
            raise NoCluster(
                f"the scheduler at {self._address} {what}; what is marked is stored. Start it and its workers again, "
                "then give the same command"
            )


def _understood(address: str) -> None:
    found = _ADDRESS.fullmatch(address)
    if found is None or found["scheme"] not in (None, "tcp", "tls", "ws", "wss", "ucx"):
        raise NoCluster(f"{address!r} is no address of a scheduler; wanted is one such as tcp://10.0.0.1:8786")
    if found["port"] is None or int(found["port"]) > 65535:
        raise NoCluster(f"{address!r} has no port; wanted is an address such as tcp://{found['host']}:8786")
    if found["scheme"] == "tls":
        import dask

        if not dask.config.get("distributed.comm.tls.client.cert", None):
            raise NoCluster(
                f"{address} needs certificates, and Dask has none: set distributed.comm.tls.ca-file and "
                "distributed.comm.tls.client.cert and .key in its configuration (~/.config/dask)"
            )


def _connected(client: Any, address: str) -> Any:
    try:
        return client(address, timeout=ANSWER, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError, TimeoutError, ImportError) as error:
        words = str(error).strip().splitlines()
        raise NoCluster(
            f"no Dask scheduler answers at {address}: {words[0] if words else type(error).__name__}"
        ) from None


@contextmanager
def _silence() -> Iterator[None]:
    """Within the block Dask's own log says nothing: what matters of it is said in a sentence."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


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
