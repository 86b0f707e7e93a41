"""What Validate says where a notebook cannot be run at all: a sentence, no traceback from the inside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from xinfer_lab.course.validate import main

pytestmark = pytest.mark.process


@pytest.mark.parametrize("content", ["", "no notebook", '{"cells": 3}'])
def test_a_file_that_is_no_notebook_gets_a_sentence(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "residency.ipynb").write_text(content, encoding="utf-8")
    assert main([str(tmp_path / "residency.ipynb")]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["success"] is False
    assert said["value"].startswith("residency.ipynb could not be run from its beginning: ")
    assert "Traceback" not in said["value"]
    assert "\n" not in said["value"]
