"""The three steps of marking as three processes: draw cases, record an answer, verify the recording.

    python -m xinfer_lab.grading draw lab1.layer_bytes --seed 7 > cases.json
    python -m xinfer_lab.grading record lab1.layer_bytes cases.json answer.py layer_bytes > data.json
    python -m xinfer_lab.grading verify lab1.layer_bytes cases.json data.json > report.json

``record`` is the only step that runs a student's code, and the only one that must not know what is right; the others
never see that code. ``verify`` ends with status 0 for a passed piece, 1 for a failed one, 2 for input that is not
what these commands write.
"""

from __future__ import annotations

import argparse
import io
import json
import runpy
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

from xinfer_lab.grading.catalog import find_piece
from xinfer_lab.grading.denial import deny
from xinfer_lab.grading.piece import cases_from_data, cases_to_data
from xinfer_lab.grading.rooms import ALWAYS_DENIED

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run one step; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m xinfer_lab.grading", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    steps = parser.add_subparsers(dest="step", required=True)
    for step in ("draw", "record", "verify"):
        command = steps.add_parser(step)
        command.add_argument("piece")
        if step == "draw":
            command.add_argument("--seed", type=int, required=True)
            continue
        command.add_argument("cases", type=Path)
        if step == "record":
            command.add_argument("file", type=Path, help="a Python file that defines the answer")
            command.add_argument("name", help="the answer's name in it")
            command.add_argument("--cpu-seconds", type=float, help="processor time that one case may take")
        else:
            command.add_argument("data", type=Path)
    asked = parser.parse_args(arguments)
    try:
        return _STEPS[asked.step](asked)
    except (OSError, ValueError) as error:
        print(f"{asked.step} {asked.piece}: {error}", file=sys.stderr)
        return 2


def _draw(asked: argparse.Namespace) -> int:
    print(json.dumps(cases_to_data(find_piece(asked.piece).draw(asked.seed))))
    return 0


def _record(asked: argparse.Namespace) -> int:
    piece: Any = find_piece(asked.piece)
    if asked.cpu_seconds is not None:
        piece = replace(piece, cpu_seconds=asked.cpu_seconds)
    cases = cases_from_data(_load(asked.cases))
    with redirect_stdout(io.StringIO()), deny((*piece.denied_modules, *ALWAYS_DENIED)):
        answer = _load_answer(asked.file, asked.name)
        data = piece.record(answer, cases)
    print(json.dumps(data))
    return 0


def _load_answer(file: Path, name: str) -> object:
    """What ``file`` defines as ``name``; where the file breaks, an answer that breaks in the same way."""
    try:
        return runpy.run_path(str(file), run_name="__main__").get(name)
    except BaseException as error:
        broken = error

    def answer(*arguments: object, **named: object) -> None:
        raise broken

    answer.__module__ = "__main__"
    return answer


def _verify(asked: argparse.Namespace) -> int:
    report = find_piece(asked.piece).verify(cases_from_data(_load(asked.cases)), _load(asked.data))
    print(json.dumps(report.to_dict()))
    return 0 if report.passed else 1


def _load(path: Path) -> object:
    def refuse(text: str) -> object:
        raise ValueError(f"{path.name} holds {text}, which is no number of JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


_STEPS = {"draw": _draw, "record": _record, "verify": _verify}

if __name__ == "__main__":
    sys.exit(main())
