"""What passes is kept, by several notebooks at once if need be; what cannot be kept is said, and fails no check."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines import written
from tests.project import ROOT
from xinfer_lab.engine.parts import find_parts
from xinfer_lab.grading import CheckFailed, check
from xinfer_lab.grading.keep import FOLDER, VARIABLE, engine_folder, keep, read_passed
from xinfer_lab.grading.part import part_of, parts_of
from xinfer_lab.grading.rooms import LABS


def test_without_a_notebook_or_a_folder_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    assert engine_folder() is None and keep("lab3.layer_of", lambda step, layers: 0) == ""
    monkeypatch.setenv(VARIABLE, "")
    assert engine_folder() is None
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_keeps_parts_beside_the_labs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, "ipykernel.zmqshell", sys)
    places = {"labs/lab3-double-buffering": FOLDER, "lab3-double-buffering": FOLDER, "mine": f"mine/{FOLDER}"}
    for here, there in places.items():
        (tmp_path / here).mkdir(parents=True)
        monkeypatch.chdir(tmp_path / here)
        assert engine_folder() == tmp_path / there


def test_a_part_is_yours_once_all_of_its_checks_passed_with_the_same_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    first = written("def prefetch(ring):\n    return 1\n", "prefetch")
    said = keep("lab3.prefetch", first)
    assert said == f"Kept as {FOLDER}/prefetch.py; it is yours once lab3.prefetch_ahead passes too."
    assert find_parts(tmp_path)["prefetch"].status == "open"
    assert keep("lab3.prefetch_ahead", first) == f"Kept as {FOLDER}/prefetch.py."
    assert find_parts(tmp_path)["prefetch"].status == "yours"
    second = written("def prefetch(ring):\n    return 2\n", "prefetch")
    said = keep("lab3.prefetch_ahead", second)
    assert said == f"{FOLDER}/prefetch.py stays the one that passed before, until lab3.prefetch passes too."
    found = find_parts(tmp_path)["prefetch"]
    assert found.status == "yours" and found.code(0) == 1
    assert keep("lab3.prefetch", second) == f"Kept as {FOLDER}/prefetch.py."
    found = find_parts(tmp_path)["prefetch"]
    assert found.status == "yours" and found.code(0) == 2


def test_a_folder_that_cannot_be_written_is_told_and_fails_no_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file" / "engine"))
    assert keep("lab3.layer_of", written("def layer_of(a, b):\n    return 1\n", "layer_of")).startswith("Not kept")
    assert keep("lab3.layer_of", 3) == "Not kept for your engine: a function or a class can be kept, not a int."


@pytest.mark.parametrize("content", ["", "[]", "{", '{"layer_of": 3, "slot_of": {"lab3.slot_of": null, "x": [1]}}'])
def test_a_record_that_cannot_be_read_is_one_without_parts(tmp_path: Path, content: str) -> None:
    (tmp_path / "parts.json").write_text(content)
    (tmp_path / "layer_of.py").write_text("def layer_of(step, layers):\n    return 0\n")
    assert find_parts(tmp_path)["layer_of"].status == "open"


def test_every_part_has_a_name_of_its_own_and_checks_that_there_are() -> None:
    from xinfer_lab.grading import find_piece

    parts = [part for lab in LABS for part in parts_of(lab)]
    assert len({part.name for part in parts}) == len(parts)
    for part in parts:
        for name in part.checks:
            find_piece(name)


LAYER_OF = "def layer_of(step, layers):\n    return step % layers\n"


def test_a_check_that_fails_keeps_the_answer_that_passed_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    wrong = written("def layer_of(step, layers):\n    return step\n", "layer_of")
    with pytest.raises(CheckFailed) as first:
        check("lab3.layer_of", wrong)
    assert "stays" not in "\n".join(first.value._render_traceback_())
    check("lab3.layer_of", written(LAYER_OF, "layer_of"))
    before = (tmp_path / "layer_of.py").read_text()
    with pytest.raises(CheckFailed) as second:
        check("lab3.layer_of", wrong)
    told = "\n".join(second.value._render_traceback_())
    assert f"{FOLDER}/layer_of.py stays as it was: your answer that passed earlier." in told
    assert (tmp_path / "layer_of.py").read_text() == before and find_parts(tmp_path)["layer_of"].status == "yours"


def test_a_file_changed_by_hand_is_told_and_its_text_survives_the_next_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    keep("lab3.layer_of", written(LAYER_OF, "layer_of"))
    path = tmp_path / "layer_of.py"
    path.write_text(path.read_text().replace("step % layers", "(step + layers) % layers"))
    found = find_parts(tmp_path)["layer_of"]
    assert found.status == "changed" and found.is_used and found.code(3, 2) == 1
    said = keep("lab3.layer_of", written(LAYER_OF, "layer_of"))
    assert said.endswith("What was changed in that file by hand is in layer_of.py.before.")
    assert "(step + layers)" in (tmp_path / "layer_of.py.before").read_text()
    assert find_parts(tmp_path)["layer_of"].status == "yours"


def test_line_ends_do_not_change_a_part_and_a_text_that_passed_earlier_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    keep("lab3.layer_of", written(LAYER_OF, "layer_of"))
    path = tmp_path / "layer_of.py"
    earlier = path.read_bytes()
    keep("lab3.layer_of", written(LAYER_OF + "# newer\n", "layer_of"))
    keep("lab3.layer_of", written(LAYER_OF.replace("step %", "step%"), "layer_of"))
    path.write_bytes(earlier.replace(b"\n", b"\r\n"))
    assert find_parts(tmp_path)["layer_of"].status == "yours"


def test_notebooks_that_keep_at_the_same_time_lose_none_of_each_others_parts(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom tests.engines import written\nfrom xinfer_lab.grading.keep import keep\n"
        "name, lab = sys.argv[1:]\n"
        "for turn in range(30):\n"
        "    said = keep(f'{lab}.{name}', written(f'def {name}(a, b, c=0):\\n    return {turn}\\n', name))\n"
        "    assert said.startswith('Kept as'), said\n"
    )
    names = {"layer_of": "lab3", "slot_of": "lab3", "layer_bytes": "lab1"}
    env = {**os.environ, VARIABLE: str(tmp_path), "PYTHONPATH": str(ROOT)}
    running = [
        subprocess.Popen([sys.executable, "-c", program, name, lab], env=env, cwd=ROOT) for name, lab in names.items()
    ]
    assert [one.wait() for one in running] == [0, 0, 0]
    passed = read_passed(tmp_path)
    for name, lab in names.items():
        part, text = part_of(f"{lab}.{name}"), (tmp_path / f"{name}.py").read_text()
        assert part is not None and passed[name].status(part, text) == "yours" and "return 29" in text
    assert not list(tmp_path.glob(".*-*")), "nothing half-written is left"


def test_a_folder_that_is_read_only_is_told_and_still_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "größe 層"
    monkeypatch.setenv(VARIABLE, str(folder))
    keep("lab3.layer_of", written(LAYER_OF, "layer_of"))

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refused)
        said = keep("lab3.slot_of", written("def slot_of(a, b, c):\n    return 0\n", "slot_of"))
    assert said == f"Not kept for your engine: Permission denied ({folder})."
    found = find_parts(folder)
    assert found["layer_of"].status == "yours" and found["slot_of"].status == "missing"
    assert sorted(path.name for path in folder.iterdir() if path.name != ".lock") == ["layer_of.py", "parts.json"]
    if os.geteuid() != 0:  # root may write anywhere
        folder.chmod(0o555)
        assert "Permission denied" in keep("lab3.layer_of", written(LAYER_OF, "layer_of"))
        folder.chmod(0o755)


def test_an_answer_under_another_name_is_kept_as_the_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    keep("lab3.layer_of", written(LAYER_OF.replace("layer_of", "mine"), "mine"))
    assert find_parts(tmp_path)["layer_of"].code(5, 3) == 2
