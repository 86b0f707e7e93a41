"""The bank: answers to the labs' pieces, right and wrong, each with what the grader has to say about it."""

from __future__ import annotations

import json
import linecache
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from tests.project import ROOT

BANK = ROOT / "tests" / "bank"
SOURCES = {path.parent.name.partition("-")[0]: path for path in sorted((ROOT / "solutions").glob("*/*.ipynb"))}
CHECK = re.compile(r'^check\("(\w+\.\w+)", (\w+)\)$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Answer:
    """One file of the bank: an answer to ``function`` of ``lab``; ``kind`` is correct, wrong or cheat.

    ``checks`` are the checks that must fail, all others have to pass; ``phrase`` is what the message must contain.
    ``rule`` is the only rule that it breaks, as ``lab1.refuse_header.limit``, or ''.
    """

    path: Path
    lab: str
    function: str
    kind: str
    checks: frozenset[str]
    phrase: str
    rule: str = ""

    @property
    def name(self) -> str:
        """Its path within the bank, for test ids."""
        return self.path.relative_to(BANK).with_suffix("").as_posix()


def answers(kind: str) -> list[Answer]:
    """All answers of ``kind``, in the order of their paths."""
    return [_read(path) for path in sorted(BANK.glob(f"*/*/{kind}/*.py"))]


def _read(path: Path) -> Answer:
    lab, function, kind, _ = path.relative_to(BANK).parts
    header = path.read_text(encoding="utf-8").split('"""')[1]
    fields = dict(line.split(": ", 1) for line in header.strip().splitlines())
    wanted = {"note"} if kind == "correct" else {"wrong", "check", "phrase"}
    if set(fields) - {"rule"} != wanted:
        raise ValueError(f"{path.name} has the header fields {sorted(fields)}, not {sorted(wanted)}")
    checks = frozenset(f"{lab}.{name}" for name in fields.get("check", "").split(", ") if name)
    rule = f"{lab}.{fields['rule']}" if "rule" in fields else ""
    return Answer(path, lab, function, kind, checks, fields.get("phrase", ""), rule)


@cache
def notebook(lab: str) -> list[dict[str, Any]]:
    """The code cells of the lab's instructor notebook: id, source, and nbgrader's metadata."""
    cells = json.loads(SOURCES[lab].read_text(encoding="utf-8"))["cells"]
    return [
        {"id": cell["id"], "source": "".join(cell["source"]), "nbgrader": cell["metadata"].get("nbgrader")}
        for cell in cells
        if cell["cell_type"] == "code"
    ]


def checks_of(lab: str) -> dict[str, str]:
    """Check -> the name that it looks at, in the notebook's order."""
    return {piece: name for cell in notebook(lab) for piece, name in CHECK.findall(cell["source"])}


def defines(source: str, name: str) -> bool:
    """Whether a cell's ``source`` defines the function or class ``name``."""
    return re.search(rf"^(def|class) {name}\b", source, re.MULTILINE) is not None


def functions_of(lab: str) -> set[str]:
    """The functions and classes that the lab asks for."""
    asked = [cell["source"] for cell in notebook(lab) if cell["nbgrader"] and cell["nbgrader"]["solution"]]
    return {name for name in checks_of(lab).values() if any(defines(source, name) for source in asked)}


def concerned(lab: str, function: str) -> list[str]:
    """The checks that an answer to ``function`` can pass or fail: its own, and the gate where it is one of its
    parts."""
    gate = checks_of(lab)[f"{lab}.gate"]
    plan = next(
        cell["source"]
        for cell in notebook(lab)
        if defines(cell["source"], gate) or re.search(rf"^{gate} = ", cell["source"], re.MULTILINE)
    )
    checks = [piece for piece, name in checks_of(lab).items() if name == function]
    return list(dict.fromkeys([*checks, *([f"{lab}.gate"] if re.search(rf"\b{function}\b", plan) else [])]))


def given_and_answers(lab: str) -> Iterator[tuple[str, str]]:
    """Id and source of the cells that define something that a piece is made of: given cells, and the instructor's
    answers."""
    for cell in notebook(lab):
        mark = cell["nbgrader"]
        if mark and not mark["grade"]:
            yield cell["id"], cell["source"]


def assemble(answer: Answer) -> str:
    """One program: the lab's given cells and answers, with ``answer`` in its own cell's place."""
    parts = []
    for _, source in given_and_answers(answer.lab):
        own = defines(source, answer.function)
        parts.append(answer.path.read_text(encoding="utf-8") if own else source)
    return "\n\n".join(parts)


def run(answer: Answer) -> dict[str, Any]:
    """The names that are defined once the lab's notebook has run with ``answer`` in it."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for place, source in given_and_answers(answer.lab):
        if defines(source, answer.function):
            source, place = answer.path.read_text(encoding="utf-8"), f"<{answer.name}>"
            linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)
        exec(compiled(source, place), names)
    return names


@cache
def compiled(source: str, place: str) -> CodeType:
    """A cell's code: the cells of a lab are run for every answer to one of its pieces."""
    return compile(source, place, "exec")
