"""A pytest plugin that chooses which of a large family of tests `make test` runs.

A family is a test marked ``sampled``, such as the bank: a tenth of it runs, and the rest is marked ``slow``. The commit
draws the tenth, so over a course of commits every case has its turn, and all who test a commit test the same. Of a lab
whose files differ from main's, every case runs. ``XINFER_LAB_SAMPLE=3`` chooses a tenth; a node id alone always runs.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from functools import cache
from typing import Any
from zlib import crc32

import pytest

from tests.project import ROOT

__all__ = ["changed_labs", "sample_of", "sampled", "waits"]

PARTS = 10
VARIABLE = "XINFER_LAB_SAMPLE"
"""The environment variable that chooses the part, 0 to 9, instead of the commit. xdist's workers inherit it."""
OWN_FILES = re.compile(r"(?:xinfer_lab/labs/|tests/bank/|solutions/)(lab\d+)[-/]")
"""The files of a lab."""


def sampled(cases: Iterable[str]) -> list[Any]:
    """``cases`` as parameters of a test: the first runs each time, of the others a sample."""
    first, *others = cases
    return [first, *(pytest.param(case, marks=pytest.mark.sampled) for case in others)]


def sample_of(commit: str) -> int:
    """The part that has its turn with ``commit``, a hexadecimal name."""
    return int(commit, 16) % PARTS


def waits(nodeid: str, sample: int, labs: frozenset[str] = frozenset()) -> bool:
    """Whether the test ``nodeid`` is left for another sample. A test of one of ``labs`` never is."""
    return crc32(nodeid.encode()) % PARTS != sample and labs.isdisjoint(re.findall(r"(?<![a-z])lab\d+", nodeid))


def changed_labs(paths: list[str]) -> frozenset[str]:
    """The labs to which one of ``paths`` belongs."""
    return frozenset(found[1] for path in paths if (found := OWN_FILES.match(path)))


def _git(*arguments: str) -> list[str]:
    """The lines that git prints; none where it cannot say."""
    try:
        said = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return said.stdout.splitlines()


@cache
def differs_from_main() -> frozenset[str]:
    """The labs whose files differ from those of the commit at which this branch left main."""
    for main in ("origin/main", "main"):
        for base in _git("merge-base", "HEAD", main):
            new = _git("ls-files", "--others", "--exclude-standard")
            return changed_labs([*_git("diff", "--name-only", base), *new])
    return frozenset()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if VARIABLE not in os.environ:
        os.environ[VARIABLE] = str(sample_of(next(iter(_git("rev-parse", "HEAD")), "0")))


def pytest_report_header() -> str:
    labs = ", ".join(sorted(differs_from_main())) or "no lab"
    return f"sample: {VARIABLE}={os.environ[VARIABLE]}; {labs} differs from main and is tested in full"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    sample, labs = int(os.environ[VARIABLE]), differs_from_main()
    for item in items:
        if item.get_closest_marker("sampled") and waits(item.nodeid, sample, labs):
            item.add_marker("slow")
    # xdist hands out files in this order: those that start processes take longest.
    items.sort(key=lambda item: item.get_closest_marker("process") is None)
