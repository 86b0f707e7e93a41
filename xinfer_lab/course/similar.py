"""Which submissions of a lab are alike, where most of the class is not: evidence for a person to look at, no proof.

Code is compared as its syntax tree, with the names of its own variables taken out, so that renaming, comments, blank
lines and the order of helper cells change nothing. What is in the release, or in many submissions, counts for nothing:
short functions have few ways to be right. Command streams are compared by their digests: who issues the same commands,
names of buffers and fences included, when nobody else does, has most likely the same program.
"""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import Any

from xinfer_lab.course.lab import Lab

__all__ = ["Pair", "Work", "alike", "fingerprints", "work_of"]

GRAM, WINDOW = 9, 5
"""Nodes of the syntax tree in one fingerprint, and of how many in a row one is kept (winnowing: Schleimer, 2003)."""

FEW = 0.1
"""The part of a class up to which what several have in common is rare."""

LEAST = 6
"""Rare fingerprints below which nothing is said of code."""

_COMMENT = re.compile(r"#\s*(\S.{14,})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Work:
    """One submission: fingerprints of its code by gap, its longer comments, and the digests of its command streams."""

    student: str
    code: Mapping[str, frozenset[int]]
    comments: frozenset[str] = frozenset()
    streams: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two students. ``share`` of the rare code of the one who has less of it is the other's too; ``gaps`` are where,
    the most alike first. ``comments`` and ``streams`` are those that hardly anybody else has.
    """

    students: tuple[str, str]
    share: float
    shared: int
    gaps: tuple[str, ...]
    comments: tuple[str, ...]
    streams: tuple[str, ...]

    @property
    def weight(self) -> float:
        """What pairs are sorted by."""
        return self.share * self.shared + 5 * len(self.comments) + 3 * len(self.streams)


def work_of(student: str, lab: Lab, marked: Path) -> Work | None:
    """The work in the marked notebook ``marked``; None where there is none to compare."""
    try:
        nb = json.loads(marked.read_text(encoding="utf-8"))
        stamp: dict[str, Any] = nb["metadata"].get("xinfer_lab", {})
        cells = [cell for cell in nb["cells"] if cell["cell_type"] == "code"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if stamp.get("trouble"):
        return None
    given = {cell.text for cell in lab.released.cells}
    texts: dict[str, str] = defaultdict(str)
    for cell in cells:
        mark, source = cell["metadata"].get("nbgrader", {}), "".join(cell["source"])
        if mark.get("locked") or mark.get("grade") or source.strip("\n") in given:
            continue
        texts[str(mark.get("grade_id", "own cells"))] += source + "\n"
    base = frozenset().union(*(fingerprints(cell.source) for cell in lab.released.cells if cell.kind == "code"))
    known = {comment for cell in lab.released.cells for comment in _COMMENT.findall(cell.source)}
    comments = {" ".join(found.split()) for text in texts.values() for found in _COMMENT.findall(text)} - known
    code = {gap: fingerprints(text) - base for gap, text in texts.items()}
    return Work(student, code, frozenset(comments), stamp.get("streams", {}))


def fingerprints(source: str) -> frozenset[int]:
    """The fingerprints of ``source``; none where it is no Python."""
    try:
        tree = ast.parse(re.sub(r"^\s*[%!].*$", "", source, flags=re.MULTILINE))
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    words = list(_words(tree))
    grams = [
        int.from_bytes(blake2b(" ".join(words[at : at + GRAM]).encode(), digest_size=8).digest())
        for at in range(len(words) - GRAM + 1)
    ]
    return frozenset(min(grams[at : at + WINDOW]) for at in range(max(0, len(grams) - WINDOW + 1)))


def _words(tree: ast.AST) -> Iterator[str]:
    """The nodes of ``tree`` from top to bottom; of names only those that the code did not choose itself."""
    own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    own |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Expr(ast.Constant(str())):
                continue  # a docstring
            case ast.Name():
                yield "own" if node.id in own else node.id
            case ast.Attribute():
                yield f".{node.attr}"
            case ast.Constant():
                yield repr(node.value) if isinstance(node.value, int | float) else type(node.value).__name__
            case ast.arg():
                yield "arg"
                continue  # without its annotation
            case ast.expr_context():
                continue
            case _:
                yield type(node).__name__
        waiting += reversed(list(ast.iter_child_nodes(node)))


def alike(works: Sequence[Work], *, share: float = 0.5) -> list[Pair]:
    """The pairs of ``works`` that have ``share`` of their rare code in common, a rare comment, or rare streams; those
    with most first.
    """
    few = max(2, int(FEW * len(works)))
    code = _rare(
        {one.student: {(gap, mark) for gap, found in one.code.items() for mark in found} for one in works}, few
    )
    comments = _rare({one.student: one.comments for one in works}, few)
    streams = _rare({one.student: set(one.streams.items()) for one in works}, few)
    pairs = set(_pairs(code, LEAST)) | set(_pairs(comments, 1)) | set(_pairs(streams, 1))
    found = []
    for one, other in pairs:
        shared = code[one] & code[other]
        least = min(len(code[one]), len(code[other]))
        part = len(shared) / least if least >= LEAST else 0.0
        same, issued = comments[one] & comments[other], streams[one] & streams[other]
        if part >= share or same or len(issued) > 1:
            counts: dict[str, int] = defaultdict(int)
            for gap, _ in shared:
                counts[gap] += 1
            gaps = tuple(sorted(counts, key=lambda gap: -counts[gap]))
            names = tuple(sorted(piece for piece, _ in issued))
            found.append(Pair((one, other), part, len(shared), gaps, tuple(sorted(same)), names))
    return sorted(found, key=lambda pair: (-pair.weight, pair.students))


def _rare(by_student: Mapping[str, Iterable[Any]], few: int) -> dict[str, set[Any]]:
    owners: dict[Any, int] = defaultdict(int)
    for things in by_student.values():
        for thing in things:
            owners[thing] += 1
    return {student: {one for one in things if owners[one] <= few} for student, things in by_student.items()}


def _pairs(rare: Mapping[str, set[Any]], least: int) -> Iterator[tuple[str, str]]:
    """Who has ``least`` rare things in common."""
    owners: dict[Any, list[str]] = defaultdict(list)
    for student, things in sorted(rare.items()):
        for thing in things:
            owners[thing].append(student)
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for students in owners.values():
        for pair in combinations(students, 2):
            counts[pair] += 1
    yield from (pair for pair, count in counts.items() if count >= least)
