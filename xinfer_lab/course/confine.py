"""Limits that a process sets on itself before it runs anything of a student's; they hold for all that it starts.

python -m xinfer_lab.course.confine [--drop]      try them out; status 0 if a process can live with them
"""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys

__all__ = ["confine", "end_with_parent"]

MEMORY = 4 * 2**30
"""Bytes of data that a process may have."""

FILE = 64 * 2**20
"""Bytes of the largest file that it may write."""

PROCESSES = 256
"""Processes and threads, of a user of its own or on top of those that the user has."""

STRANGER = 200_000
"""The user that root becomes is this number and the process's own added: nobody has it."""


def confine(*, drop: bool, cpu: int, memory: int = MEMORY, threads: int = 0) -> None:
    """Limit this process for good: ``cpu`` seconds of processor time, ``memory`` bytes of data, file size, processes,
    no core files.

    ``threads`` are those that this user has elsewhere. With ``drop`` root becomes a stranger without rights. Does what
    the system can; on Windows nothing (the parent watches).
    """
    if sys.platform == "win32":
        return
    if drop:
        user = STRANGER + os.getpid() + int.from_bytes(os.urandom(2), "little") * 4
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    import resource

    _limit(resource.RLIMIT_CORE, 0)
    # A signal that tells what it was before the one that an out-of-memory killer sends too.
    _limit(resource.RLIMIT_CPU, cpu, cpu + 10)
    _limit(resource.RLIMIT_FSIZE, FILE)
    _limit(resource.RLIMIT_NOFILE, 512)
    if sys.platform == "linux":
        _limit(resource.RLIMIT_DATA, memory)
        _limit(resource.RLIMIT_NPROC, PROCESSES + threads)


def end_with_parent(parent: int | None = None) -> None:
    """See that this process is killed when the thread that started it ends, however that ends (Linux alone).

    A change of user undoes it, and it is not inherited: to be called after `confine`, and in each fork. Of a parent
    that has ended before, nobody tells: a fork, which reads nothing from it, names its process ``parent`` and ends.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
        if parent is not None and os.getppid() != parent:
            os._exit(1)


def _limit(which: int, soft: int, hard: int | None = None) -> None:
    import resource

    _, most = resource.getrlimit(which)
    values = [value if most == resource.RLIM_INFINITY else min(value, most) for value in (soft, hard or soft)]
    resource.setrlimit(which, (values[0], values[1]))


if __name__ == "__main__":
    confine(drop="--drop" in sys.argv, cpu=60)
    for name in ("json", "xinfer_lab", "IPython.core.interactiveshell"):
        importlib.import_module(name)
