"""Which notebook of a submission is marked: among all, the one with most filled in, and of equals the newest.

Browsers and students rename (``lab (1).ipynb``), and a second upload leaves the first where it is. So the name decides
last. The student and the instructor are told what was taken and what was passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xinfer_lab.course.handed_in import HandedIn
from xinfer_lab.course.lab import Lab
from xinfer_lab.course.notebook import Cell, Notebook, UnreadableNotebook, load_notebook
from xinfer_lab.course.transplant import Origin, transplant

__all__ = ["Taken", "take"]

SAME_TIME = 2.0
"""Seconds. Archives keep times no finer than this."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The notebook to mark, its file's ``name``, and ``notes`` for the student on how it was found.

    ``trouble`` says why nothing can be marked, or is empty; the notebook has no cells then.
    """

    notebook: Notebook
    name: str
    notes: tuple[str, ...]
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class _Candidate:
    name: str
    notebook: Notebook
    filled: int
    belongs: bool
    modified: float


def take(lab: Lab, handed_in: HandedIn) -> Taken:
    """The notebook of ``handed_in`` that is marked for ``lab``."""
    unread = list(handed_in.unread)
    found: list[_Candidate] = []
    for file in handed_in.files:
        try:
            notebook = load_notebook(file.content, file.name)
        except UnreadableNotebook as error:
            unread.append(f"{error}.")
            continue
        filled, belongs = _filled(lab, notebook)
        found.append(_Candidate(file.name, notebook, filled, belongs, file.modified))
    notes = (*handed_in.notes, *(f"A notebook could not be read: {words}" for words in unread))
    candidates = [one for one in found if one.belongs]
    if not candidates:
        return Taken(Notebook(()), "", notes, _nothing(lab, handed_in, unread, found))
    most = max(one.filled for one in candidates)
    newest = max(one.modified for one in candidates if one.filled == most)
    best = max(
        (one for one in candidates if one.filled == most and one.modified > newest - SAME_TIME),
        key=lambda one: (one.name == lab.name, one.modified, one.name),
    )
    if not best.filled and unread:
        words = f"{best.name} is as it was released, and {' '.join(unread).rstrip('.')}"
        return Taken(Notebook(()), "", notes, words)
    return Taken(best.notebook, best.name, (*notes, *_told(lab, best, candidates)))


def _filled(lab: Lab, notebook: Notebook) -> tuple[int, bool]:
    """How many gaps of ``lab`` have another text in ``notebook`` than in the release; whether it is this lab's."""
    there = {cell.grade_id: cell for cell in lab.released.cells if cell.mark.get("solution")}
    placed = transplant(lab.released, notebook)
    filled = {
        one.name
        for one in placed.cells
        if one.origin is Origin.ANSWER and one.name not in placed.missing and _differs(there, one.name, one.cell)
    }
    ids = {cell.grade_id or cell.id for cell in notebook.cells} & lab.grade_ids
    return len(filled), bool(ids) or len(placed.missing) < len(there)


def _differs(there: Mapping[str | None, Cell], name: str, cell: Cell) -> bool:
    return name in there and there[name].text != cell.text and bool(cell.text.strip())


def _told(lab: Lab, best: _Candidate, candidates: list[_Candidate]) -> list[str]:
    notes = []
    others = [one for one in candidates if one is not best]
    gaps = sum(bool(cell.mark.get("solution")) for cell in lab.released.cells)
    if best.name != lab.name and all(one.name != lab.name for one in others):
        notes.append(f"{best.name} was marked in the place of {lab.name}: it holds this lab's cells.")
    if others:
        passed = ", ".join(f"{one.name} ({one.filled} of {gaps})" for one in others)
        words = "the most answers, or the newest of those with as many"
        notes.append(
            f"{len(candidates)} notebooks of this lab were handed in. {best.name} was marked ({best.filled} of {gaps} "
            f"answers filled in): it has {words}. Passed over: {passed}."
        )
    return notes


def _nothing(lab: Lab, handed_in: HandedIn, unread: list[str], found: list[_Candidate]) -> str:
    """Why there is nothing to mark."""
    if unread:
        return " ".join(unread).rstrip(".")
    if found:
        others = ", ".join(one.name for one in found)
        return f"no notebook that was handed in holds this lab's cells: {others}"
    there = ", ".join(handed_in.others[:5])
    return f"no notebook was handed in: {lab.name} is missing" + (f"; there is {there}" if there else "")
