"""Puts a student's answers, and the cells they added, into the released notebook."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from xinfer_lab.course import clean
from xinfer_lab.course.notebook import Cell, Notebook

__all__ = ["Origin", "Placed", "Transplant", "transplant"]


class Origin(Enum):
    """Whose a cell is."""

    GIVEN = "given"  # the course's, locked
    FREE = "free"  # the course's, open to changes but unchanged: worked examples, explorations
    ANSWER = "answer"  # the student's, in a gap of the course's
    OWN = "own"  # added by the student
    CHECK = "check"  # the course's grade cell


@dataclass(frozen=True, slots=True)
class Placed:
    """A cell at its place in the notebook that is marked. ``name`` is what people call it."""

    origin: Origin
    name: str
    cell: Cell


@dataclass(frozen=True, slots=True)
class Transplant:
    """The notebook that is marked, and what was noticed about the student's. ``missing`` are the gaps without
    a cell.
    """

    cells: tuple[Placed, ...]
    notes: tuple[str, ...]
    missing: frozenset[str]


def transplant(released: Notebook, submitted: Notebook) -> Transplant:
    """The student's cells of ``submitted`` in the notebook ``released``.

    A cell belongs to a released one by its grade id, else by its cell id, else by an equal source. Of several with one
    grade id all are kept, each where it stands, as in a notebook that is run from top to bottom. A deleted gap stays
    empty. The result put through again is the same.
    """
    matcher = _Matcher(released)
    matched: list[int | None] = [None] * len(submitted.cells)
    for find in (matcher.by_grade_id, matcher.by_cell_id, matcher.by_source):
        for index, cell in enumerate(submitted.cells):
            if matched[index] is None:
                matched[index] = find(cell)
    first: dict[int, int] = {}
    for index, target in enumerate(matched):
        if target is not None:
            first.setdefault(target, index)
    own = _own_cells(released, submitted, matched, first)
    notes = [*map(clean.plain, submitted.notes), *_notes(released, submitted, matched, first)]
    placed: list[Placed] = list(own[-1])
    for target, cell in enumerate(released.cells):
        theirs = submitted.cells[first[target]] if target in first else None
        placed += _fill(cell, theirs)
        placed += own[target]
    gaps = {cell.grade_id for target, cell in enumerate(released.cells) if _is_gap(cell) and target not in first}
    return Transplant(tuple(placed), tuple(notes), frozenset(str(name) for name in gaps))


class _Matcher:
    """Finds the released cell that a submitted one belongs to; by source and id, each is found once."""

    def __init__(self, released: Notebook) -> None:
        self._cells = released.cells
        self._by_grade = {cell.grade_id: i for i, cell in enumerate(released.cells) if cell.grade_id}
        self._by_id = {cell.id: i for i, cell in enumerate(released.cells) if cell.id}
        self._by_text: dict[tuple[str, str], list[int]] = defaultdict(list)
        for i, cell in enumerate(released.cells):
            self._by_text[cell.kind, _text(cell)].append(i)
        self._taken: set[int] = set()

    def by_grade_id(self, cell: Cell) -> int | None:
        found = self._by_grade.get(cell.grade_id) if cell.grade_id else None
        if found is not None:
            self._taken.add(found)
        return found

    def by_cell_id(self, cell: Cell) -> int | None:
        return self._take(self._by_id.get(cell.id) if cell.id else None)

    def by_source(self, cell: Cell) -> int | None:
        places = self._by_text.get((cell.kind, _text(cell)), ())
        free = self._take(next((i for i in places if i not in self._taken), None))
        if free is None and places and not _is_gap(self._cells[places[0]]):
            return places[0]  # a copy of what the course gives adds nothing
        return free

    def _take(self, found: int | None) -> int | None:
        if found is None or found in self._taken:
            return None
        self._taken.add(found)
        return found


def _text(cell: Cell) -> str:
    """What cells are compared by: the same before and after cleaning, so that a marked notebook is read as it was."""
    return clean.source(cell.kind, cell.text)


def _is_gap(cell: Cell) -> bool:
    return bool(cell.mark.get("solution"))


def _is_check(cell: Cell) -> bool:
    return bool(cell.mark.get("grade")) and not _is_gap(cell)


def _is_open(cell: Cell) -> bool:
    return not cell.mark


def _differs(released: Cell, theirs: Cell) -> bool:
    return (released.kind, _text(released)) != (theirs.kind, _text(theirs))


def _fill(released: Cell, theirs: Cell | None) -> list[Placed]:
    """What stands in the place of a released cell."""
    name = released.grade_id or released.id or "a cell"
    if _is_gap(released):
        if theirs is None:
            if not released.mark.get("grade"):
                return []
            theirs = Cell(
                released.kind, "# There is no answer." if released.kind == "code" else "*There is no answer.*"
            )
        source = released.source if not _differs(released, theirs) else clean.source(released.kind, theirs.source)
        answer = replace(released, source=source, attachments=clean.pictures(theirs.attachments))
        return [Placed(Origin.ANSWER, name, answer)]
    if _is_open(released):
        if theirs is not None and _differs(released, theirs):
            return [Placed(Origin.OWN, name, replace(_plain(theirs), id=released.id))]
        return [Placed(Origin.FREE, name, released)]
    return [Placed(Origin.CHECK if _is_check(released) else Origin.GIVEN, name, released)]


def _own_cells(
    released: Notebook, submitted: Notebook, matched: Sequence[int | None], first: dict[int, int]
) -> dict[int, list[Placed]]:
    """The student's own cells, by the released cell that they come after (-1: before all)."""
    own: dict[int, list[Placed]] = defaultdict(list)
    after, number = -1, 0
    for index, (cell, target) in enumerate(zip(submitted.cells, matched, strict=True)):
        if target is not None and first[target] == index:
            after = target
            continue
        if target is not None and not _repeats(released.cells[target], cell):
            continue
        number += 1
        place = after
        following = next((t for i, t in enumerate(matched) if i > index and t is not None and first[t] == i), None)
        if following is not None and following <= after and _is_gap(released.cells[following]):
            place = following - 1  # a helper that was moved together with the answer below it
        own[place].append(Placed(Origin.OWN, f"your own cell {number}", _plain(cell)))
    return own


def _repeats(released: Cell, copy: Cell) -> bool:
    """Whether a further cell of one grade id is a student's own work."""
    return _is_gap(released) or (_is_open(released) and _differs(released, copy))


def _plain(cell: Cell) -> Cell:
    return Cell(cell.kind, clean.source(cell.kind, cell.source), attachments=clean.pictures(cell.attachments))


def _notes(released: Notebook, submitted: Notebook, matched: Sequence[int | None], first: dict[int, int]) -> list[str]:
    notes = []
    for target, cell in enumerate(released.cells):
        name = cell.grade_id or cell.id
        theirs = [submitted.cells[i] for i, found in enumerate(matched) if found == target]
        if not cell.mark:
            continue
        if not theirs:
            which = "the gap stays empty" if _is_gap(cell) else "the course's was put back"
            notes.append(f"The cell {name} is missing; {which}.")
        elif len(theirs) > 1:
            which = "all were run, the last counts" if _is_gap(cell) else "the course's was used once"
            notes.append(f"The cell {name} is there {len(theirs)} times; {which}.")
        if _is_gap(cell) and theirs and theirs[0].kind != cell.kind:
            notes.append(f"The cell {name} was turned into {theirs[0].kind}; its text was taken as {cell.kind}.")
        if theirs and not _is_gap(cell) and _differs(cell, theirs[0]):
            notes.append(f"The cell {name} was changed; the course's was used.")
    return notes
