"""One writer of a course's marks at a time, across processes, containers and hosts that share its folder."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

__all__ = ["STATE", "Busy", "only_one"]

STATE = ".xinfer-lab"
"""The folder in the course's that holds what a run has to remember."""


class Busy(RuntimeError):
    """Another process writes marks or releases a lab; the message says which."""


@contextmanager
def only_one(root: Path, what: str) -> Iterator[None]:
    """Within the block nobody else writes for the course in ``root``; ``what`` tells others what is done meanwhile.

    The system holds the lock and gives it up when the process ends, however it does. Process numbers would not do: a
    container counts its own. Raises `Busy` at once.
    """
    folder = root / STATE
    folder.mkdir(exist_ok=True)
    # Not in the lock's own file: asking for the lock empties that.
    about = folder / "busy.json"
    lock = FileLock(folder / "autograde.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise Busy(f"{_holder(about)}; wait for it to end, or end it") from None
    try:
        now = datetime.now().astimezone().isoformat(sep=" ", timespec="minutes")
        about.write_text(json.dumps({"what": what, "who": f"process {os.getpid()} on {platform.node()}", "since": now}))
        yield
    finally:
        about.unlink(missing_ok=True)
        lock.release()


def _holder(about: Path) -> str:
    with suppress(OSError, ValueError, KeyError, TypeError):
        said = json.loads(about.read_text())
        return f"{said['who']} is {said['what']} (since {said['since']})"
    return "another process is writing marks of this course"
