"""Where the tests' time goes: run every test on one worker, add up the seconds of each file, and write docs/testing.md.

    python -m tools.test_times

Seconds on the clock, since processor time would leave out what runs in a sandbox: so run it on a machine that does
nothing else.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "testing.md"
BEGIN, END = "<!-- times -->\n", "<!-- /times -->"
LEAST = 3.0
"""Seconds of a file that has a row of its own."""


class Times:
    """Seconds and number of tests by (file, whether `make test` leaves them out)."""

    def __init__(self) -> None:
        self.seconds: Counter[tuple[str, bool]] = Counter()
        self.tests: Counter[tuple[str, bool]] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:  # noqa: D102
        key = report.nodeid.partition("::")[0], "slow" in report.keywords
        self.seconds[key] += report.duration
        self.tests[key] += report.when == "call"

    def table(self) -> str:
        """A row for each file that takes long, the longest in `make test` first."""
        files = sorted({file for file, _ in self.seconds}, key=lambda file: -self.seconds[file, False])
        large = [file for file in files if self.seconds[file, False] + self.seconds[file, True] >= LEAST]
        rest = [file for file in files if file not in large]
        rows = [(f"`{file}`", [file]) for file in large]
        rows += [(f"{len(rest)} other files", rest), ("**all**", files)]
        head = "| file | tests in `make test` | seconds | left to `make test-slow` | seconds |"
        lines = [head, "| --- |" + " ---: |" * 4]
        for name, group in rows:
            cells = []
            for slow in (False, True):
                tests, seconds = (sum(each[file, slow] for file in group) for each in (self.tests, self.seconds))
                cells += [f"{tests:,}", f"{seconds:,.0f}"] if tests else ["", ""]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Run the tests with pytest's ``arguments``, and write the table unless one of them failed."""
    before = time.monotonic()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    yardstick = time.monotonic() - before
    times = Times()
    status = pytest.main(["-q", "-m", "not cuda", "-p", "no:cacheprovider", *arguments], plugins=[times])
    if status == pytest.ExitCode.OK:
        words = f"Seconds of one worker, on a machine that starts Python and imports torch in {yardstick:.1f} s:\n\n"
        head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        tail = rest.partition(END)[2]
        PAGE.write_text(f"{head}{BEGIN}{words}{times.table()}{END}{tail}", encoding="utf-8")
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
