"""`make test` runs a part of each large family, another with each commit, and all that a lab's change concerns."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import ROOT
from tests.sample import PARTS, changed_labs, sample_of, waits

BANK = [f"tests/bank/test_lab{lab}.py::test[lab{lab}/piece/wrong/{number}]" for lab in (1, 2) for number in range(500)]


def test_each_case_has_its_turn_in_one_sample_of_ten() -> None:
    turns = [[one for one in BANK if not waits(one, sample)] for sample in range(PARTS)]
    assert sorted(one for turn in turns for one in turn) == sorted(BANK)
    assert all(len(BANK) / PARTS / 1.5 < len(turn) < 1.5 * len(BANK) / PARTS for turn in turns)


def test_commits_draw_every_sample() -> None:
    assert {sample_of(f"{number:040x}") for number in range(PARTS)} == set(range(PARTS))


def test_of_a_lab_that_differs_no_case_waits() -> None:
    assert [one for one in BANK if not waits(one, 0, frozenset({"lab2"})) and "lab2" in one] == BANK[500:]
    assert any(waits(one, 0, frozenset({"lab2"})) for one in BANK[:500])
    assert not any(waits(f"tests/test_lab2.py::test[{number}]", 0, frozenset({"lab2"})) for number in range(20))


@pytest.mark.parametrize(
    ("path", "labs"),
    [
        ("xinfer_lab/labs/lab3/judge/judges.py", {"lab3"}),
        ("tests/bank/lab3/prefetch/wrong/late.py", {"lab3"}),
        ("solutions/lab3-double-buffering/double-buffering.ipynb", {"lab3"}),
        ("xinfer_lab/grading/check.py", set()),
        ("labs/lab3-double-buffering/double-buffering.ipynb", set()),
    ],
)
def test_a_lab_differs_where_one_of_its_own_files_does(path: str, labs: set[str]) -> None:
    assert changed_labs([path, "README.md"]) == labs


FAMILY = """
import pytest

@pytest.mark.sampled
@pytest.mark.parametrize("case", range(40))
def test_case(case): pass

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.cuda
def test_cuda(): pass

def test_other(): pass

@pytest.mark.process
def test_process(): pass
"""


def collected(folder: Path, marks: str, **environment: str) -> tuple[list[str], str]:
    """The node ids that ``-m marks`` leaves, in order, and all that pytest says."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow\n    sampled\n    cuda\n    process\n")
    (folder / "test_family.py").write_text(FAMILY)
    command = [sys.executable, "-m", "pytest", "-m", marks, "-p", "tests.left_out", "-p", "tests.sample", "-p",
               "no:cacheprovider", "--collect-only", "-q"]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment}
    said = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True).stdout
    return [line for line in said.splitlines() if "::" in line], said


def test_what_one_run_leaves_out_the_other_runs(tmp_path: Path) -> None:
    fast, said = collected(tmp_path, "not slow and not cuda", XINFER_LAB_SAMPLE="3")
    rest, _ = collected(tmp_path, "slow and not cuda", XINFER_LAB_SAMPLE="3")
    assert len(fast) + len(rest) == 43 and not set(fast) & set(rest)
    assert f"Slow tests not run: {len(rest)} (" in said and "CUDA tests not run: 1 (" in said
    assert fast[0].endswith("::test_process"), "those that take longest come first"
    other, _ = collected(tmp_path, "not slow and not cuda", XINFER_LAB_SAMPLE="4")
    assert not {one for one in fast if "test_case" in one} & {one for one in other if "test_case" in one}
