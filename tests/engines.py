"""Engines made of the labs' reference answers, kept as checks keep them."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

import pytest

from tests.answer_bank import SOURCES, compiled, given_and_answers
from xinfer_lab.grading.keep import VARIABLE, keep
from xinfer_lab.grading.part import parts_of

__all__ = ["keep_lab", "keep_parts", "names_of", "written"]


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
    return [line for lab in sorted(SOURCES) for line in keep_lab(lab, folder, monkeypatch, without=without)]


def keep_lab(lab: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *, without: tuple[str, ...] = ()) -> list[str]:
    """The parts of one ``lab`` in the same way."""
    monkeypatch.setenv(VARIABLE, str(folder))
    names = names_of(lab) if parts_of(lab) else {}
    parts = [part for part in parts_of(lab) if part.name not in without]
    return [keep(check, names[part.code]) for part in parts for check in part.checks]


def written(source: str, name: str, **names: Any) -> Any:
    """What ``source`` defines as ``name``, as a notebook's cell would."""
    place = f"<cell {abs(hash(source))}>"
    linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)
    space = {"__name__": "__main__", **names}
    exec(compile(source, place, "exec", dont_inherit=True), space)
    return space[name]
