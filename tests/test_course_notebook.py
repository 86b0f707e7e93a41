"""Notebooks as they come: whatever can be read is read, and what cannot is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.marking import cells, notebook
from xinfer_lab.course.notebook import UnreadableNotebook, parse_notebook, read_notebook

IDS = frozenset({"double", "triple", "check-double"})


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.fixture
def filled() -> dict:
    return notebook(cells(filled=True, hidden=False, stream=False))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "empty"),
        ('{"cells": [', "not valid JSON"),
        ("[1, 2]", "no notebook"),
        ('{"nbformat": 4}', "no list of cells"),
        ('{"cells": 7}', "no list of cells"),
        ("[" * 200_000, "not valid JSON"),
    ],
    ids=["empty", "cut off", "a list", "no cells", "cells of another type", "deeply nested"],
)
def test_what_is_no_notebook_is_refused_with_its_reason(content: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableNotebook, match=why):
        read_notebook(write(tmp_path / "lab.ipynb", content))


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "lab.ipynb"
    path.write_bytes(b"PK\x03\x04\xff\xfe")
    with pytest.raises(UnreadableNotebook, match="UTF-8"):
        read_notebook(path)


def test_a_folder_of_that_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableNotebook, match="cannot be opened"):
        read_notebook(tmp_path)


def test_huge_outputs_are_passed_over(filled: dict, tmp_path: Path) -> None:
    filled["cells"][2]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * 20_000_000}]
    read = read_notebook(write(tmp_path / "lab.ipynb", filled))
    assert len(read.cells) == len(filled["cells"]) and read.notes == ()


def test_cells_that_cannot_be_read_are_passed_over_and_told(filled: dict) -> None:
    filled["cells"][1:1] = [
        7,
        {"cell_type": "code"},
        {"cell_type": "mystery", "source": ""},
        {"cell_type": "code", "source": [1]},
    ]
    read = parse_notebook(filled)
    assert [cell.grade_id for cell in read.cells if cell.grade_id == "double"] == ["double"]
    assert [note.split()[2] for note in read.notes] == ["2", "4", "5"]  # a code cell without a source is an empty one


@pytest.mark.parametrize("mark", [None, 7, {"grade_id": 3}, {"grade_id": None}])
def test_broken_marks_count_as_none(mark: object, filled: dict) -> None:
    filled["cells"][2]["metadata"]["nbgrader"] = mark
    assert parse_notebook(filled).cells[2].grade_id is None


def test_format_3_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    old = {"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "code", "input": ["a = 1\n", "b = 2"]}]}]}
    path = tmp_path / "lab.ipynb"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(old).encode())
    assert [cell.source for cell in read_notebook(path).cells] == ["a = 1\nb = 2"]


def test_colabs_ids_are_read_from_the_metadata() -> None:
    cell = {"cell_type": "code", "source": "", "metadata": {"id": "double"}}
    assert parse_notebook({"cells": [cell]}).cells[0].id == "double"
