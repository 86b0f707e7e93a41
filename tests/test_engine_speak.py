"""A model speaks through the student's engine, as it comes, and every logit equals the resident run's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines import keep_parts, written
from xinfer_lab.engine.speak import Speech, speak
from xinfer_lab.grading.keep import keep
from xinfer_lab.residency.errors import RequestError


def test_it_speaks_and_says_whose_parts_ran_and_that_bytes_are_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_parts(tmp_path, monkeypatch, without=("copy_engine",))
    capsys.readouterr()
    speak(tokens=4, folder=tmp_path)
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "ROMEO."
    assert said[-2] == "streaming vs resident max abs diff = 0"
    assert said[-1] == "5 of the 7 parts that ran are yours; lent by the course: copy_engine, staging_ring."


def test_a_wrong_part_shows_in_the_last_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_parts(tmp_path, monkeypatch)
    path = tmp_path / "copy_engine.py"
    text = path.read_text()
    assert text.count("start + place.offset") == 1
    path.write_text(text.replace("start + place.offset", "start"))
    capsys.readouterr()
    speak(tokens=2, folder=tmp_path)
    said = capsys.readouterr().out.splitlines()
    assert said[-2] == "Stopped: some logits are no numbers. A part read bytes that had not been copied yet."
    assert "parts that ran" in said[-1]


def test_without_an_engine_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="checks in the labs' notebooks keep your parts"):
        speak(folder=tmp_path / "nowhere")


def test_where_checks_kept_nothing_all_parts_are_lent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XINFER_LAB_ENGINE", str(tmp_path / "nowhere"))
    speak(tokens=2)
    said = capsys.readouterr().out.splitlines()
    assert said[-2] == "streaming vs resident max abs diff = 0"
    assert said[-1].startswith("0 of the 8 parts that ran are yours; lent by the course: ")


def test_a_moment_is_told_in_words_and_a_models_text_is_text() -> None:
    speech = Speech(2**20)
    speech.text, speech.used, speech.slots = "<b>&\n", 2**19, {0: 3, 1: None}
    page = speech.html()
    assert "&lt;b&gt;&amp;" in page and "slot 0: <strong>layer 3" in page and "slot 1: <strong>empty" in page
    assert page.count("512.00 KiB of device memory; the whole model would take 1.00 MiB") == 2 and "width:50.0%" in page


def test_a_part_that_fails_ends_it_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XINFER_LAB_ENGINE", str(tmp_path))
    keep("lab3.release", written("def release(ring, layer):\n    return 1 // 0\n", "release"))
    keep("lab3.ensure", written("def ensure(ring, layer):\n    return 1\n", "ensure"))
    (tmp_path / "ensure.py").write_text("def ensure(:\n")
    speak(tokens=2)
    said = capsys.readouterr().out.splitlines()
    assert said[-2].startswith("Stopped: your part stopped in release.py, line 4: ZeroDivisionError: ")
    assert "lent by the course: " in said[-1] and "ensure.py cannot be imported: SyntaxError" in said[-1]
