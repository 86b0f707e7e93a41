"""Makes a student's feedback page: for each graded cell what was expected, what happened, what it earned."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from nbformat import NotebookNode

from xinfer_lab.course.feedback.works import Work, Works
from xinfer_lab.course.lab import Lab
from xinfer_lab.course.marked_notebook import read_marked
from xinfer_lab.course.outputs import verdict_under
from xinfer_lab.course.transplant import Origin
from xinfer_lab.course.verdict import Status, Verdict
from xinfer_lab.grading.report import Report

__all__ = ["Page", "Piece", "Points", "page_of"]

_MINUTES = re.compile(r"\s*\([^()]*\b(minutes|points)\b[^()]*\)\s*$")


@dataclass(frozen=True, slots=True)
class Points:
    """What the gradebook says of a graded cell. ``marked`` is the score that marking gave, ``given`` the instructor's;
    None where there is none.
    """

    score: float
    most: float
    marked: float | None = None
    given: float | None = None
    extra: float = 0.0


@dataclass(frozen=True, slots=True)
class Piece:
    """A graded cell. ``remark`` says what ``report`` cannot: why there is none, or that the points were changed.

    ``question`` is the text that a written answer answers. ``status`` is a word for people.
    """

    name: str
    title: str
    status: str
    points: Points
    report: Report | None
    remark: str
    question: str
    works: tuple[Work, ...]

    @property
    def score(self) -> str:
        """Points as shown: a dash where nobody has given any yet."""
        waiting = self.points.marked is None and self.points.given is None
        return f"{'–' if waiting else format(self.points.score, 'g')} of {self.points.most:g}"

    @property
    def kind(self) -> str:
        """``full``, ``lost`` or ``waiting``."""
        if self.points.marked is None and self.points.given is None:
            return "waiting"
        return "full" if self.points.score >= self.points.most else "lost"


@dataclass(frozen=True, slots=True)
class Page:
    """A student's page. ``notes`` is Markdown from marking; ``rest`` is work below the last graded cell."""

    title: str
    student: str
    score: float
    most: float
    late_penalty: float
    notes: str
    pieces: tuple[Piece, ...]
    rest: tuple[Work, ...]

    @property
    def waiting(self) -> bool:
        """Whether points are still to come."""
        return any(piece.kind == "waiting" for piece in self.pieces)


def page_of(
    lab: Lab, marked: NotebookNode, points: Mapping[str, Points], student: str, *, late_penalty: float = 0.0
) -> Page:
    """The page for the notebook ``marked``, as marking left it, and the gradebook's ``points`` by grade id.

    Of grade cells only the verdicts are used, never the source: hidden tests cannot get onto a page.
    """
    read = read_marked(lab, marked)
    pieces: list[Piece] = []
    works = Works(lab)
    heading, text = lab.assignment, ""
    for one, cell in read.pairs():
        if one.cell.kind == "markdown" and one.origin in (Origin.GIVEN, Origin.FREE):
            text = one.cell.source
            heading = _heading(text, "## ") or heading
        if one.origin in (Origin.ANSWER, Origin.OWN):
            works.take(one, cell)
        if one.cell.mark.get("grade"):
            grade = points.get(one.name, Points(0.0, float(one.cell.mark.get("points", 0))))
            by_hand = one.origin is Origin.ANSWER
            verdict = None if by_hand else verdict_under(cell.get("outputs", ()))
            pieces.append(_piece(one.name, heading, grade, verdict, text if by_hand else "", works.hand_out(one.name)))
    titles = (_heading(cell.source, "# ") for cell in lab.released.cells if cell.kind == "markdown")
    title = next(filter(None, titles), lab.assignment)
    score = sum(piece.points.score for piece in pieces) - late_penalty
    most = sum(piece.points.most for piece in pieces)
    return Page(title, student, score, most, late_penalty, read.notes, tuple(pieces), works.rest())


def _heading(text: str, mark: str) -> str:
    """The last heading of ``text`` of the level of ``mark``, without what it says of time and points, or ''."""
    found = [line.removeprefix(mark) for line in text.splitlines() if line.startswith(mark)]
    return _MINUTES.sub("", found[-1]).replace("`", "").strip() if found else ""


def _piece(
    name: str, heading: str, points: Points, verdict: Verdict | None, question: str, works: tuple[Work, ...]
) -> Piece:
    if question:
        word, remark = _by_hand(points, any(work.comment for work in works))
        return Piece(name, heading, word, points, None, remark, question, works)
    report = verdict.report if verdict else None
    status = verdict.status if verdict else None
    word = status.value if status else "not marked"
    remark = (
        "" if report else "This check was not marked, so it earned nothing. Ask for this notebook to be marked again."
    )
    if points.given is not None:
        before = "nothing" if points.marked is None else f"{points.marked:g}"
        remark = f"{remark} Your instructor set these points to {points.given:g}; marking gave {before}.".strip()
        if status is not Status.PASSED and points.given >= points.most:
            word = "points given by your instructor"
    if points.extra:
        remark = f"{remark} Of these points, {points.extra:g} are extra credit.".strip()
    return Piece(report.piece if report else name, heading, word, points, report, remark, "", works)


def _by_hand(points: Points, commented: bool) -> tuple[str, str]:
    if points.given is not None:
        lost = points.score < points.most
        return "read by your instructor", (
            "No comment was left; ask your instructor what was missing." if lost and not commented else ""
        )
    if points.marked is None:
        return "not read yet", "Your instructor reads this answer and gives its points; they are not in the sum yet."
    return "no answer", "The text of the release stands here unchanged, so there is no answer to read."
