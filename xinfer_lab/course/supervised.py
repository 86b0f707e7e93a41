"""A child process that speaks in lines of JSON, and is ended when it takes more than it may."""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

__all__ = ["OUTSIDE", "Ended", "Limits", "Supervised"]

POLL = 0.1
"""Seconds between two looks at what a child uses."""

OUTSIDE = "its process was killed from outside (signal 9)"
"""What is said of a child that got a signal which its parent did not send."""

KILLED, OUT_OF_TIME = (-9, 128 + 9), (-24, 128 + 24)
"""Statuses of a process that ended by SIGKILL and by SIGXCPU: its own, and as bubblewrap passes it on."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a child, with all processes that it starts, may take. Time counts from its last line.

    ``memory``: bytes resident. ``processes``: a number. ``output``: bytes in all. ``idle``: seconds without using the
    processor; ``wall``: seconds at all, for what neither computes nor ends.
    """

    memory: int = 4 * 2**30
    processes: int = 48
    output: int = 64 * 2**20
    idle: float = 60.0
    wall: float = 900.0


@dataclass(frozen=True, slots=True)
class Ended:
    """Why a child is no more. ``cause`` is exit, killed, cpu, idle, wall, budget, memory, processes, output or
    protocol; ``words`` are for people. Killed is a child that got a signal 9 which its parent did not send.
    """

    cause: str
    words: str
    stderr: str = ""


class Supervised:
    """Starts ``command``. `send` and `receive` exchange JSON values, one a line; `stop` ends it and all that it
    started.
    """

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None, limits: Limits | None = None
    ) -> None:
        self.limits = limits or Limits()
        self.ended: Ended | None = None
        self._process = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(env), cwd=cwd, start_new_session=os.name == "posix",
        )  # fmt: skip
        self._watched = psutil.Process(self._process.pid)
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._errors = b""
        self._too_much = False
        assert self._process.stdout and self._process.stderr
        self._readers = [
            threading.Thread(target=self._read_lines, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_errors, args=(self._process.stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def send(self, value: object) -> None:
        """Send ``value``. A child that is gone is noticed by `receive`."""
        assert self._process.stdin
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(json.dumps(value).encode() + b"\n")
            self._process.stdin.flush()

    def receive(self, cpu: float, until: float = math.inf) -> Any:
        """The child's next value, or `Ended`. Ends the child when it uses ``cpu`` seconds of processor time first, or
        breaks a limit, or when `time.monotonic` has come to ``until``.
        """
        if self.ended is not None:
            return self.ended
        began = moved = time.monotonic()
        line: bytes | None = None
        start: float | None = None
        seen = 0.0
        while True:
            with contextlib.suppress(queue.Empty):
                line = self._lines.get(timeout=POLL)
                break
            now, usage = time.monotonic(), self._usage()
            if now > until:
                return self.stop(Ended("budget", "the time for this notebook as a whole was up"))
            start = usage.cpu if start is None else start
            if usage.cpu > seen + 0.01:
                seen, moved = usage.cpu, now
            if (broken := self._broken(usage, usage.cpu - start, now - moved, now - began, cpu)) is not None:
                return self.stop(broken)
        if line is None:
            return self.stop(self._exit())
        try:
            return json.loads(line, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return self.stop(Ended("protocol", "the process wrote something that is no recording"))

    def stop(self, why: Ended | None = None) -> Ended:
        """End the child and all processes below it, and say ``why``."""
        if self.ended is None:
            self._kill()
            for reader in self._readers:
                reader.join(timeout=5)
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
                with contextlib.suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]
            why = why or Ended("exit", "it was ended")
            self.ended = Ended(why.cause, why.words, self._errors.decode(errors="replace")[-2000:])
        return self.ended

    def _kill(self) -> None:
        # The first is the outermost: with a process namespace of its own, all below it die with it.
        below = []
        with contextlib.suppress(psutil.Error):
            below = self._watched.children(recursive=True)
        with contextlib.suppress(OSError):
            self._process.kill()
        if sys.platform != "win32":
            for _ in range(3):
                with contextlib.suppress(OSError):
                    os.killpg(self._process.pid, signal.SIGKILL)
        for process in below:
            with contextlib.suppress(psutil.Error):
                process.kill()
        self._process.wait()
        _wait_for_the_end(below)

    def _exit(self) -> Ended:
        if self._too_much:
            return Ended("output", f"the process wrote more than {self.limits.output:,} bytes")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        status = self._process.returncode
        if status in KILLED:
            return Ended("killed", OUTSIDE)
        if status in OUT_OF_TIME:
            return Ended("cpu", "it used up the processor time of one process")
        how = f"with status {status}" if status is None or status >= 0 else f"by signal {-status}"
        return Ended("exit", f"the process ended {how}")

    def _usage(self) -> _Usage:
        cpu, memory, count = 0.0, 0, 0
        try:
            processes = [self._watched, *self._watched.children(recursive=True)]
        except psutil.Error:
            return _Usage(0.0, 0, 0)
        for process in processes:
            with contextlib.suppress(psutil.Error), process.oneshot():
                times = process.cpu_times()
                cpu += (
                    times.user
                    + times.system
                    + getattr(times, "children_user", 0.0)
                    + getattr(times, "children_system", 0.0)
                )
                memory += process.memory_info().rss
                count += 1
        return _Usage(cpu, memory, count)

    def _broken(self, usage: _Usage, spent: float, idle: float, wall: float, cpu: float) -> Ended | None:
        limits = self.limits
        if usage.memory > limits.memory:
            return Ended("memory", f"it used more than {limits.memory // 2**20:,} MiB of memory")
        if usage.processes > limits.processes:
            return Ended("processes", f"it started more than {limits.processes} processes")
        if spent > cpu:
            return Ended("cpu", f"it had not ended after {cpu:g} s of processor time")
        if idle > limits.idle:
            return Ended("idle", f"it waited for more than {limits.idle:g} s without doing anything")
        if wall > limits.wall:
            return Ended("wall", f"it had not ended after {limits.wall:g} s")
        return None

    def _read_lines(self, pipe: IO[bytes]) -> None:
        left = self.limits.output
        with contextlib.suppress(OSError, ValueError):
            while line := pipe.readline(left + 1):
                left -= len(line)
                if left < 0:
                    self._too_much = True
                    break
                self._lines.put(line)
        self._lines.put(None)

    def _read_errors(self, pipe: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            while part := pipe.read1(65536):  # type: ignore[attr-defined]
                self._errors = (self._errors + part)[-20_000:]


@dataclass(frozen=True, slots=True)
class _Usage:
    cpu: float
    memory: int
    processes: int


def _wait_for_the_end(processes: Sequence[psutil.Process], seconds: float = 10.0) -> None:
    """Wait until ``processes`` run no more. A zombie does not: its new parent may take its time to notice, or never."""
    last = time.monotonic() + seconds
    while any(_runs(process) for process in processes) and time.monotonic() < last:
        time.sleep(0.005)


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")
