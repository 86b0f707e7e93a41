"""The recording step of marking, in a process of its own for each answer, as `python -m xinfer_lab.grading record` is.

Such a process spends almost all its time on importing torch. Where the system can fork, each is a fork of one that has
done so, and has loaded nothing else that a recording process does not load before it reads an answer.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from multiprocessing import get_all_start_methods, get_context
from pathlib import Path
from typing import Any

__all__ = ["record_apart"]

PRELOADED = ("torch", "xinfer_lab.grading.__main__", "tests.recorder")
LONGEST = 120.0
"""Seconds until a process counts as stuck."""


def record_apart(
    piece: str, cases: Sequence[Any], source: str, name: str, folder: Path, *, cpu_seconds: float
) -> object:
    """What the program ``source`` recorded as its answer ``name`` to ``cases``, in a process that has those alone.

    ``folder`` is the process's own. ``cpu_seconds``: processor time that one case may take.
    """
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    (folder / "answer.py").write_text(source, encoding="utf-8")
    context: Any = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload(list(PRELOADED))
    arguments = ["record", piece, "cases.json", "answer.py", name, "--cpu-seconds", str(cpu_seconds)]
    process = context.Process(target=_record, args=(folder, arguments))
    process.start()
    process.join(LONGEST)
    if process.exitcode is None:
        process.kill()
        process.join()
    assert process.exitcode == 0, (folder / "stderr").read_text(encoding="utf-8")
    return json.loads((folder / "stdout").read_text(encoding="utf-8"))


def _record(folder: Path, arguments: list[str]) -> None:
    os.chdir(folder)
    # The descriptors themselves: an answer may write to them.
    for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr)):
        file = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, stream.fileno())
        os.close(file)
    from xinfer_lab.grading.__main__ import main

    sys.exit(main(arguments))
