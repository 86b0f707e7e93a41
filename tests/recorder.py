"""Processes of their own for what a recording process does: record an answer, or load what it needs for that.

Such a process spends almost all its time on importing torch. Where the system can fork, each is a fork of one that has
done so, and has loaded nothing else but what every recording process loads before it reads an answer.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from multiprocessing import get_all_start_methods, get_context
from pathlib import Path
from typing import Any

from tests.project import STUCK

__all__ = ["load_apart", "record_apart"]

PRELOADED = ("torch", "xinfer_lab.grading.__main__", "tests.recorder")


def record_apart(
    piece: str, cases: Sequence[Any], source: str, name: str, folder: Path, *, cpu_seconds: float
) -> object:
    """What the program ``source`` recorded as its answer ``name`` to ``cases``, in a process that has those alone.

    ``folder`` is the process's own. ``cpu_seconds``: processor time that one case may take.
    """
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    (folder / "answer.py").write_text(source, encoding="utf-8")
    arguments = ["record", piece, "cases.json", "answer.py", name, "--cpu-seconds", str(cpu_seconds)]
    return json.loads(_apart(_record, folder, arguments))


def load_apart(pieces: Sequence[str], denied: Sequence[str], folder: Path) -> None:
    """Load ``pieces`` in a process where ``denied`` modules cannot be imported, and none of them is there."""
    _apart(_load, folder, pieces, denied)


def _apart(act: Callable[..., None], folder: Path, *arguments: object) -> str:
    """What ``act(*arguments)`` writes to standard output, in the folder ``folder``; an AssertionError with what it
    writes to standard error unless its process ends with status 0."""
    context: Any = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload(list(PRELOADED))
    process = context.Process(target=_act, args=(folder, act, arguments))
    process.start()
    process.join(STUCK)
    if process.exitcode is None:
        process.kill()
        process.join()
    assert process.exitcode == 0, (folder / "stderr").read_text(encoding="utf-8")
    return (folder / "stdout").read_text(encoding="utf-8")


def _act(folder: Path, act: Callable[..., None], arguments: Sequence[object]) -> None:
    os.chdir(folder)
    # The descriptors themselves: an answer may write to them.
    for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr)):
        file = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, stream.fileno())
        os.close(file)
    act(*arguments)


def _record(arguments: list[str]) -> None:
    from xinfer_lab.grading.__main__ import main

    sys.exit(main(arguments))


def _load(pieces: Sequence[str], denied: Sequence[str]) -> None:
    from xinfer_lab.grading.catalog import find_piece
    from xinfer_lab.grading.denial import Denied

    there = [name for name in sys.modules if name.startswith(tuple(denied))]
    assert not there, f"loaded before it was denied: {', '.join(there)}"
    sys.meta_path.insert(0, Denied(denied))
    for name in pieces:
        find_piece(name)
