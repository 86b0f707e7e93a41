"""How far a lab is, and what was guessed: kept by the kernel, and in files where a folder is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from xinfer_lab.grading import CheckFailed, check, pieces_of, progress
from xinfer_lab.grading.guess import beside_guess
from xinfer_lab.grading.progress import VARIABLE, note_guess, note_outcome, read_guess, standing_after
from xinfer_lab.grading.report import Passed, Report


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel in which nothing was checked."""
    monkeypatch.setattr(progress, "_outcomes", {})
    monkeypatch.setattr(progress, "_guesses", {})
    monkeypatch.delenv(VARIABLE, raising=False)


def test_points_so_far_and_what_is_next(capsys: pytest.CaptureFixture[str]) -> None:
    pieces = pieces_of("lab1")
    total = sum(piece.points for piece in pieces)
    check("lab1.predict_cache", "A")
    assert capsys.readouterr().out.splitlines()[1] == f"1 of {total} points. Next: lab1.kv_cache_bytes."
    for piece in pieces[4:]:
        note_outcome(piece.name, True)
    assert standing_after(pieces[-1].name).next == pieces[0].name, "what was passed over is next at the end"
    for piece in pieces:
        note_outcome(piece.name, True)
    assert str(standing_after("lab1.gate")) == f"{total} of {total} points. Every check of this lab has passed."


def test_an_earlier_kernels_passes_count_and_a_check_that_fails_now_does_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    check("lab1.predict_cache", "A")
    monkeypatch.setattr(progress, "_outcomes", {})
    assert standing_after("lab1.predict_pool").passed == 1
    with pytest.raises(CheckFailed) as failed:
        check("lab1.predict_cache", None)
    assert "0 of " in failed.value._render_traceback_()[-2]


def test_what_passed_has_a_tick_and_lets_no_markup_in() -> None:
    page = Passed(Report("lab1.x", True, "<b>Right.", checked=1), ("1 of 2 points.", "", "<i>"))._repr_html_()
    assert "\N{CHECK MARK} </span>lab1.x: passed." in page and "&lt;b&gt;Right." in page
    assert "<br>1 of 2 points.<br>&lt;i&gt;</div>" in page


def test_a_guess_is_kept_and_shown_beside_the_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check("lab1.predict_embedding", 12)
    capsys.readouterr()
    beside_guess("lab1.predict_embedding", 27.58, unit="%")
    assert capsys.readouterr().out.startswith("The answer: 27.6 %; you guessed 12 %.")
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    check("lab1.predict_cache", "A")
    monkeypatch.setattr(progress, "_guesses", {})
    capsys.readouterr()
    beside_guess("lab1.predict_cache", "D")
    assert capsys.readouterr().out == "The answer: D; you guessed A.\n"
    note_guess("lab1.predict_cache", "D")
    beside_guess("lab1.predict_cache", "D")
    assert capsys.readouterr().out == "The answer: D; you guessed it.\n"


@pytest.mark.parametrize("guess", [None, "<b>", ["A"], True, {"a": 1}, float("nan"), float("inf"), -3])
def test_without_a_guess_or_with_none_that_can_be_drawn_the_answer_is_shown_alone(
    capsys: pytest.CaptureFixture[str], guess: object
) -> None:
    if guess is not None:
        note_guess("lab2.predict_pinned", guess)
    beside_guess("lab2.predict_pinned", 4.6, 7.886)
    assert capsys.readouterr().out.startswith("The answer: 4.6 to 7.89. from: 4.6. to: 7.89.")
    beside_guess("lab2.predict_pinned", "C")
    assert capsys.readouterr().out == "The answer: C.\n"


@pytest.mark.parametrize("content", ["", "{", "\xff"])
def test_a_guess_that_cannot_be_read_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    (tmp_path / "guesses").mkdir()
    (tmp_path / "guesses" / "lab1.predict_cache").write_text(content, encoding="latin-1")
    assert read_guess("lab1.predict_cache") is None
