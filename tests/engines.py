"""Engines made of the labs' reference answers, kept as checks keep them."""

from __future__ import annotations

import linecache
from pathlib import Path

import pytest

from tests.answer_bank import SOURCES, compiled, given_and_answers
from xinfer_lab.grading.keep import VARIABLE, keep
from xinfer_lab.grading.part import parts_of

__all__ = ["keep_parts", "names_of"]


def names_of(lab: str) -> dict[str, object]:
    """The names that ``lab``'s notebook defines, each cell's text in `linecache` as IPython puts it there."""
    names: dict[str, object] = {"__name__": "__main__"}
    for cell, source in given_and_answers(lab):
        place = f"<{lab} {cell}>"
        linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)
        exec(compiled(source, place), names)
    return names


def keep_parts(folder: Path, monkeypatch: pytest.MonkeyPatch, *, without: tuple[str, ...] = ()) -> list[str]:
    """Keep every part of every lab in ``folder`` but those called ``without``; what was said of each."""
    monkeypatch.setenv(VARIABLE, str(folder))
    said = []
    for lab in sorted(SOURCES):
        names = names_of(lab) if parts_of(lab) else {}
        for part in parts_of(lab):
            if part.name not in without:
                said += [keep(check, names[part.code]) for check in part.checks]
    return said
