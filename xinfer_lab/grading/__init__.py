"""Checks, records and verifies the answers to the labs' pieces."""

from xinfer_lab.grading.catalog import find_piece, pieces_of
from xinfer_lab.grading.check import CheckFailed, check, examine
from xinfer_lab.grading.piece import Case, Piece, cases_from_data, cases_to_data
from xinfer_lab.grading.question import Question
from xinfer_lab.grading.report import Drawing, Misconception, Report

__all__ = [
    "Case",
    "CheckFailed",
    "Drawing",
    "Misconception",
    "Piece",
    "Question",
    "Report",
    "cases_from_data",
    "cases_to_data",
    "check",
    "examine",
    "find_piece",
    "pieces_of",
]
