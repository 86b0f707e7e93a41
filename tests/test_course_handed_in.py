"""Which notebook of a submission is marked, and what is said of the others: files are only read."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.marking import STUBS, cells, hand_in, notebook
from xinfer_lab.course.grade_cells import grade_cells
from xinfer_lab.course.handed_in import File, HandedIn, collect, time_of
from xinfer_lab.course.lab import Lab
from xinfer_lab.course.notebook import parse_notebook
from xinfer_lab.course.taken import Taken, take

SOURCE = parse_notebook(notebook(cells(filled=True, hidden=True, stream=False)))
BLANK = notebook(cells(filled=False, hidden=False, stream=False))
LAB = Lab("lab9-small", "lab.ipynb", parse_notebook(BLANK), grade_cells(SOURCE.cells))
FULL = notebook(hand_in())
GAPS = ("double", "triple", "choice")


def filled(names: tuple[str, ...]) -> dict:
    """The lab with these gaps filled in and its written answer left."""
    written = {cell["id"]: cell["source"] for cell in BLANK["cells"]}
    return notebook(
        hand_in({name: STUBS[name] for name in GAPS if name not in names} | {"written": written["written"]})
    )


def put(folder: Path, name: str, content: object, at: float = 1_000_000.0) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(raw)
    os.utime(path, (at, at))


def taken(folder: Path) -> Taken:
    return take(LAB, collect(folder))


def test_a_solved_copy_is_taken_and_the_blank_one_is_told(tmp_path: Path) -> None:
    put(tmp_path, "lab.ipynb", BLANK, at=9e6)
    put(tmp_path, "lab (1).ipynb", FULL, at=1e6)
    found = taken(tmp_path)
    assert (found.name, found.trouble) == ("lab (1).ipynb", "")
    assert "lab (1).ipynb was marked (4 of 4" in found.notes[0] and "lab.ipynb (0 of 4)" in found.notes[0]


def test_of_equals_the_newest_is_taken_and_of_two_of_one_time_the_labs_name(tmp_path: Path) -> None:
    put(tmp_path, "lab.ipynb", FULL, at=1e6)
    put(tmp_path, "lab (1).ipynb", FULL, at=1e6 + 1)
    assert taken(tmp_path).name == "lab.ipynb"
    put(tmp_path, "lab (1).ipynb", FULL, at=1e6 + 60)
    assert taken(tmp_path).name == "lab (1).ipynb"


def test_a_notebook_in_a_folder_or_with_one_more_suffix_is_found(tmp_path: Path) -> None:
    put(tmp_path, "mine/lab.IPYNB.txt", FULL)
    put(tmp_path, ".ipynb_checkpoints/lab.ipynb", BLANK, at=9e6)
    put(tmp_path, "__MACOSX/._lab.ipynb", b"junk")
    found = taken(tmp_path)
    assert found.name == "mine/lab.IPYNB.txt"
    assert found.notes == ("mine/lab.IPYNB.txt was marked in the place of lab.ipynb: it holds this lab's cells.",)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "no notebook was handed in: lab.ipynb is missing"),
        ({"readme.txt": b"see you"}, "lab.ipynb is missing; there is readme.txt"),
        ({"lab.ipynb": b""}, "lab.ipynb is empty"),
        ({"lab.ipynb": b"{", "other.ipynb": b"["}, "lab.ipynb is not valid JSON"),
        ({"lab.ipynb": notebook([])}, "holds this lab's cells: lab.ipynb"),
        (
            {"lab.ipynb": BLANK, "lab (1).ipynb": b"{"},
            "lab.ipynb is as it was released, and lab (1).ipynb is not valid",
        ),
    ],
)
def test_where_there_is_nothing_to_mark_it_says_why(files: dict[str, object], why: str, tmp_path: Path) -> None:
    for name, content in files.items():
        put(tmp_path, name, content)
    assert why in taken(tmp_path).trouble


def test_a_blank_notebook_alone_is_what_was_handed_in(tmp_path: Path) -> None:
    put(tmp_path, "lab.ipynb", BLANK)
    assert taken(tmp_path) == Taken(parse_notebook(BLANK), "lab.ipynb", ())


def test_answers_are_counted_in_a_notebook_without_metadata(tmp_path: Path) -> None:
    put(tmp_path, "lab.ipynb", BLANK, at=9e6)
    put(tmp_path, "stripped.ipynb", notebook([{**cell, "metadata": {}} for cell in hand_in()]))
    assert taken(tmp_path).name == "stripped.ipynb"


@given(
    st.lists(
        st.tuples(st.sets(st.sampled_from(GAPS)), st.integers(0, 9), st.sampled_from(["lab", "lab (1)", "a", "z"])),
        min_size=1, max_size=4, unique_by=lambda one: one[2],
    )
)  # fmt: skip
def test_nobody_with_more_answers_or_a_newer_file_of_as_many_is_passed_over(
    made: list[tuple[set[str], int, str]],
) -> None:
    files = tuple(
        File(f"{name}.ipynb", json.dumps(filled(tuple(gaps))).encode(), 100.0 * at) for gaps, at, name in made
    )
    found = take(LAB, HandedIn(files, (), (), (), "", ""))
    gaps, at, _ = next(one for one in made if f"{one[2]}.ipynb" == found.name)
    assert all((len(other[0]), other[1]) <= (len(gaps), at) for other in made)
    for other in files:
        assert other.name == found.name or other.name in " ".join(found.notes)


# --------------------------------------------------------------------------------------------------------- the files


def test_the_version_is_that_of_content_and_the_signature_that_of_files(tmp_path: Path) -> None:
    put(tmp_path, "lab.ipynb", FULL, at=1e6)
    before = collect(tmp_path)
    put(tmp_path, "lab.ipynb", FULL, at=2e6)
    after = collect(tmp_path)
    assert before.version == after.version and before.signature != after.signature
    put(tmp_path, "lab (1).ipynb", BLANK)
    assert collect(tmp_path).version != before.version


@pytest.mark.skipif(sys.platform == "win32", reason="a link may need rights there")
def test_a_link_out_of_the_submission_is_not_followed(tmp_path: Path) -> None:
    put(tmp_path, "course/solutions.ipynb", FULL)
    put(tmp_path, "mine/notes.txt", b"")
    (tmp_path / "mine" / "lab.ipynb").symlink_to(tmp_path / "course" / "solutions.ipynb")
    assert "lab.ipynb is a link" in taken(tmp_path / "mine").trouble


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"2026-11-29 20:00:00 UTC", ""),
        (b"\xef\xbb\xbf2026-11-29 20:00:00 UTC\r\n", ""),
        (b"", ""),
        (b"yesterday at noon", "yesterday at noon"),
        ("2026-11-30 10:00:00 UTC".encode("utf-16"), "not text in UTF-8"),
        (b"9" * 300, "cannot be read as a date"),
        (b"2026-11-29 20:00:00 Nowhere/Land", ""),
        (b"x" * 5000, "5,000 bytes"),
    ],
)
def test_a_time_that_is_none_is_told_and_costs_nothing(raw: bytes, said: str, tmp_path: Path) -> None:
    put(tmp_path, "lab.ipynb", FULL)
    put(tmp_path, "timestamp.txt", raw)
    found, trouble = time_of(tmp_path)
    assert said in trouble and bool(said) == bool(trouble)
    assert (found is not None) == (raw.strip() != b"" and not said)
    assert taken(tmp_path).trouble == "" and (not said or said in " ".join(taken(tmp_path).notes))
