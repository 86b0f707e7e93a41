"""Tables on screens of different widths, and where there is none."""

from __future__ import annotations

from functools import partial

import pytest
from rich.console import Console

from xinfer_lab.cli import screen

COLUMNS = ("", "pass", "median", "GB/s\nmoved", "peak", "planned")
ROW = ["a residency of a long name", "prefill 16384", "1.23 s", "55.4", "12.34 GiB", "12.35 GiB"]
SPARE = ("planned", "peak")


def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int, terminal: bool) -> list[str]:
    monkeypatch.setattr(screen, "Console", partial(Console, width=width, force_terminal=terminal, color_system=None))
    screen.print_table(COLUMNS, [ROW], left=2, spare=SPARE)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]


@pytest.mark.parametrize(("width", "missing"), [(120, ""), (72, "planned"), (62, "planned peak")])
def test_a_narrow_terminal_goes_without_what_can_be_spared(monkeypatch, capsys, width: int, missing: str) -> None:
    lines = shown(monkeypatch, capsys, width, terminal=True)
    head, body = " ".join(lines[:-1]), lines[-1]
    for name, cell in zip(COLUMNS[1:], ROW[1:], strict=True):
        there = name not in missing.split()
        assert (name.split()[0] in head) == there
        assert (cell in body) == there
    assert max(len(line) for line in lines) <= width


def test_what_is_no_terminal_gets_whole_lines(monkeypatch, capsys) -> None:
    lines = shown(monkeypatch, capsys, 40, terminal=False)
    assert all(cell in lines[-1] for cell in ROW)
    assert all(name.split()[0] in " ".join(lines[:-1]) for name in COLUMNS[1:])
    assert max(len(line) for line in lines) < 100
