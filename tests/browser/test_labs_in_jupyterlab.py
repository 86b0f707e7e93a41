"""Each lab in JupyterLab, as a student works through it in a real Chromium."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.conftest import Worked, every_lab

pytestmark = pytest.mark.browser
Studied = Callable[[Path], Worked]


@every_lab
def test_a_wrong_answer_is_told_its_misconception_and_a_right_one_passes(studied: Studied, source: Path) -> None:
    seen = studied(source).seen
    assert "not yet" in seen.check_failed and " ".join(seen.answer.phrase.split()) in " ".join(
        seen.check_failed.split()
    )
    assert "passed" in seen.check_passed and "not yet" not in seen.check_passed


@every_lab
def test_all_cells_run_to_the_end(studied: Studied, source: Path) -> None:
    assert studied(source).seen.errors_left == []


@every_lab
def test_an_arrow_key_on_a_slider_changes_the_picture(studied: Studied, source: Path) -> None:
    before, after = studied(source).seen.pictures
    assert before and after and before != after


@every_lab
def test_every_knob_has_a_label(studied: Studied, source: Path) -> None:
    assert studied(source).seen.unnamed == []


@every_lab
def test_validate_succeeds_and_the_server_answers_meanwhile(studied: Studied, source: Path) -> None:
    seen = studied(source).seen
    assert (seen.served, seen.still_validating.strip()) == (200, "Validating...")
    assert "success" in seen.validated.lower()


@every_lab
def test_nothing_is_complained_of_and_no_other_host_is_asked(studied: Studied, source: Path) -> None:
    watched = studied(source).watched
    assert (watched.complaints, watched.foreign) == ([], [])
