"""docs/testing.md's table: seconds by file, apart for what `make test` runs and what it leaves out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tools.test_times import BEGIN, END, PAGE, Times


def report(nodeid: str, when: str, duration: float, *keywords: str) -> Any:
    return SimpleNamespace(nodeid=nodeid, when=when, duration=duration, keywords=dict.fromkeys(keywords, 1))


def test_seconds_are_added_up_by_file_and_small_files_share_a_row() -> None:
    times = Times()
    for one in (
        report("tests/test_a.py::one", "setup", 2.0),
        report("tests/test_a.py::one", "call", 3.0),
        report("tests/test_a.py::two[x]", "call", 40.0, "slow"),
        report("tests/test_b.py::one", "call", 6.0),
        report("tests/test_c.py::one", "call", 1.0),
    ):
        times.pytest_runtest_logreport(one)
    assert times.table().splitlines()[2:] == [
        "| `tests/test_b.py` | 1 | 6 |  |  |",
        "| `tests/test_a.py` | 1 | 5 | 1 | 40 |",
        "| 1 other files | 1 | 1 |  |  |",
        "| **all** | 3 | 12 | 1 | 40 |",
    ]


def test_the_page_has_a_place_for_it() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.count(BEGIN) == page.count(END) == 1
