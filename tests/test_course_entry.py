"""Files of a submission are taken without following a link, and nothing that lies there ends a run."""

from __future__ import annotations

import json
import os
import pwd
import shutil
from datetime import datetime
from pathlib import Path

import pytest

from tests.marking import hand_in, notebook
from tests.project import ROOT
from xinfer_lab.course.handed_in import collect, time_of
from xinfer_lab.course.nbgrader_process import run_nbgrader
from xinfer_lab.course.notebook import UnreadableNotebook, read_notebook
from xinfer_lab.course.plain_files import LinkRefused, _copy, copy_plain, read_plain

SECRET = b'{"cells": []}'


@pytest.fixture
def submitted(tmp_path: Path) -> Path:
    """A folder as submitted/ is, beside a secret."""
    (tmp_path / "secret.ipynb").write_bytes(SECRET)
    (tmp_path / "submitted" / "alice" / "lab").mkdir(parents=True)
    (tmp_path / "submitted" / "alice" / "lab" / "lab.ipynb").write_bytes(SECRET)
    (tmp_path / "submitted" / "mallory").mkdir()
    return tmp_path / "submitted"


def file_link(submitted: Path) -> None:
    (submitted / "mallory" / "lab").mkdir()
    (submitted / "mallory" / "lab" / "lab.ipynb").symlink_to(submitted.parent / "secret.ipynb")


def file_link_to_a_neighbour(submitted: Path) -> None:
    (submitted / "mallory" / "lab").mkdir()
    (submitted / "mallory" / "lab" / "own.txt").write_bytes(SECRET)
    (submitted / "mallory" / "lab" / "lab.ipynb").symlink_to("own.txt")


def renamed_link(submitted: Path) -> None:
    (submitted / "mallory" / "lab").mkdir()
    (submitted / "mallory" / "lab" / "lab (1).ipynb").symlink_to("../../alice/lab/lab.ipynb")


def folder_link(submitted: Path) -> None:
    (submitted / "mallory" / "lab").symlink_to("../alice/lab")


def student_link(submitted: Path) -> None:
    (submitted / "mallory").rmdir()
    (submitted / "mallory").symlink_to("alice")


def link_to_itself(submitted: Path) -> None:
    (submitted / "mallory" / "lab").mkdir()
    (submitted / "mallory" / "lab" / "lab.ipynb").symlink_to("lab.ipynb")


LINKS = [file_link, file_link_to_a_neighbour, renamed_link, folder_link, student_link]


@pytest.mark.parametrize("make", LINKS)
def test_no_link_is_followed_wherever_it_stands(make, submitted: Path) -> None:
    make(submitted)
    found = collect(submitted / "mallory" / "lab")
    assert found.files == () and any("is a link; hand in the file itself" in note for note in found.unread)
    with pytest.raises(UnreadableNotebook):
        read_notebook(submitted / "mallory" / "lab" / "lab.ipynb", depth=3)


def test_a_link_that_leads_nowhere_is_no_file(submitted: Path) -> None:
    link_to_itself(submitted)
    assert collect(submitted / "mallory" / "lab").files == ()


def test_a_submission_itself_is_read_even_where_the_course_lies_behind_a_link(submitted: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").symlink_to(submitted)
    found = collect(tmp_path / "elsewhere" / "alice" / "lab")
    assert [(file.name, file.content) for file in found.files] == [("lab.ipynb", SECRET)] and found.unread == ()
    assert read_plain(submitted / "alice" / "lab" / "lab.ipynb", 5, depth=3) == (SECRET[:5], len(SECRET))


def test_a_pipe_or_a_folder_in_the_place_of_a_notebook_holds_nothing_up(submitted: Path) -> None:
    folder = submitted / "mallory" / "lab"
    folder.mkdir()
    os.mkfifo(folder / "lab.ipynb")
    with pytest.raises(LinkRefused, match="is no file"):
        read_plain(folder / "lab.ipynb", 10, depth=3)
    assert collect(folder).files == ()
    os.mkfifo(folder / "timestamp.txt")
    assert time_of(folder)[0] is None
    with pytest.raises(OSError):
        read_plain(submitted / "alice", 10, depth=1)


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "\x00\xff", "9" * 300, "2026-13-45 99:99:99 UTC", "1" * 40, "NaN NaN NaN", "(((", "0 0 0"],
)
def test_a_time_that_cannot_be_read_is_none(text: str, submitted: Path) -> None:
    folder = submitted / "alice" / "lab"
    (folder / "timestamp.txt").write_text(text, encoding="latin-1")
    found, words = time_of(folder)
    assert (found is None and (words or not text)) or isinstance(found, datetime)
    (folder / "timestamp.txt").write_text("2026-11-30 12:00:00.000000 UTC\n", encoding="ascii")
    assert time_of(folder) == (datetime(2026, 11, 30, 12), "")


def test_a_copy_leaves_out_links_and_what_is_no_file_and_says_so(submitted: Path, tmp_path: Path) -> None:
    folder = submitted / "mallory"
    (folder / "inner").mkdir()
    (folder / "inner" / "own.txt").write_bytes(b"mine")
    (folder / "inner" / "up").symlink_to("../..")
    (folder / "lab.ipynb").symlink_to(tmp_path / "secret.ipynb")
    os.mkfifo(folder / "pipe")
    left_out = copy_plain(folder, tmp_path / "copy")
    assert sorted(left_out) == ["inner/up is a link", "lab.ipynb: is a link", "pipe: is no file"]
    copied = {path.relative_to(tmp_path / "copy").as_posix() for path in (tmp_path / "copy").rglob("*")}
    assert copied == {"inner", "inner/own.txt"}
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(LinkRefused):
        copy_plain(tmp_path / "link", tmp_path / "another")


def test_a_file_of_another_account_is_not_copied(submitted: Path, tmp_path: Path) -> None:
    descriptor = os.open(submitted.parent, os.O_RDONLY)
    with pytest.raises(LinkRefused, match="another account"):
        _copy("secret.ipynb", descriptor, tmp_path / "copied", os.getuid() + 1)
    os.close(descriptor)
    assert not (tmp_path / "copied").exists()


def test_collecting_takes_what_is_a_students_own_and_goes_on_after_all_else(tmp_path: Path) -> None:
    root, lab, name = tmp_path / "course", "lab9", "lab.ipynb"
    (root / "solutions").mkdir(parents=True)
    shutil.copy(ROOT / "nbgrader_config.py", root)
    user = pwd.getpwuid(os.getuid()).pw_name
    inbound = tmp_path / "exchange" / "xinfer-lab" / "inbound"
    inbound.mkdir(parents=True)
    for folder in (
        f"{user}+{lab}+2026-11-30 12:00:00 UTC+x",
        f"alice+{lab}+2026-11-30 12:00:00 UTC+x",
        f"{user}+{lab}+no time at all+x",
        f"..+{lab}+2026-11-30 12:00:00 UTC+x",
    ):
        (inbound / folder).mkdir()
        (inbound / folder / name).write_text(json.dumps(notebook(hand_in())), encoding="utf-8")
    (inbound / f"{user}+{lab}+2027-01-01 12:00:00 UTC+y").symlink_to(root / "solutions" / lab)
    own = inbound / f"{user}+{lab}+2026-11-30 12:00:00 UTC+x"
    (own / "extra.ipynb").symlink_to(root / "solutions" / lab / name)
    run_nbgrader(root, "collect", lab, f"--Exchange.root={tmp_path / 'exchange'}")
    taken = {path.relative_to(root).as_posix() for path in (root / "submitted").rglob("*.ipynb")}
    assert taken == {f"submitted/{user}/{lab}/{name}"}
    assert not (root / lab).exists()  # where a student called ".." would lie
