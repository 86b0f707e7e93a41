"""A student's engine: parts are kept as they were written, put together, and give the resident bytes."""

from __future__ import annotations

import json
import linecache
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engines import keep_parts
from tests.models import Models, tiny
from tests.project import ROOT
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.host_device import HostDevice
from xinfer_lab.engine.assemble import Engine
from xinfer_lab.engine.parts import find_parts
from xinfer_lab.grading.keep import FOLDER, VARIABLE, engine_folder, keep
from xinfer_lab.grading.part import parts_of
from xinfer_lab.grading.rooms import LABS
from xinfer_lab.grading.source_of import NotKept, source_of
from xinfer_lab.qwen2 import Checkpoint
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.parity import compare_logits, run_fixed


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("engine") / FOLDER
    with pytest.MonkeyPatch.context() as patch:
        said = keep_parts(folder, patch)
    assert all(line.startswith(f"Kept as {FOLDER}/") for line in said)
    return folder


def written(source: str, name: str, **names: Any) -> Any:
    """What ``source`` defines as ``name``, as a notebook's cell would."""
    place = f"<cell {abs(hash(source))}>"
    linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)
    space = {"__name__": "__main__", **names}
    exec(compile(source, place, "exec"), space)
    return space[name]


# ----------------------------------------------------------------------------------------------------- an answer's text


def test_a_kept_answer_is_what_was_written_with_the_helpers_constants_and_imports_that_it_uses() -> None:
    cell = (
        "import math as m\nfrom collections import deque\n\nSTEP = 256\nUNUSED = 1\n\n\n"
        "def round_up(n):  # a helper\n    return -(-n // STEP) * STEP\n\n\n"
        "def answer(n):\n    # my own words\n    todo = deque([n])\n    return m.floor(round_up(todo.pop()))\n"
    )
    text = source_of(written(cell, "answer"))
    assert "# my own words" in text and "# a helper" in text and "UNUSED" not in text
    space: dict[str, Any] = {}
    exec(text, space)
    assert space["answer"](257) == 512


def test_a_class_is_kept_with_its_base_and_recursion_ends() -> None:
    cell = (
        "class Base:\n    def even(self, n):\n        return n == 0 or odd(n - 1)\n\n\n"
        "def odd(n):\n    return n != 0 and Mine().even(n - 1)\n\n\n"
        "class Mine(Base):\n    WORD = 'mine'\n\n    def three(self):\n        return self.even(4), self.WORD\n"
    )
    space: dict[str, Any] = {}
    exec(source_of(written(cell, "Mine")), space)
    assert space["Mine"]().three() == (True, "mine")


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("rows = {1: object()}\ndef answer():\n    return rows\n", "it uses rows, a dict that only the notebook holds"),
        ("answer = 3\n", "a function or a class can be kept, not a int"),
        ("answer = lambda: 3\n", "the text of <lambda> is not to be found"),
    ],
)
def test_what_only_the_notebook_holds_is_not_kept_and_it_is_said_why(cell: str, why: str) -> None:
    with pytest.raises(NotKept, match=why):
        source_of(written(cell, "answer"))


# -------------------------------------------------------------------------------------------------------------- keeping


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
    assert said == f"Kept as {FOLDER}/prefetch.py; it is yours once lab3.prefetch_ahead pass too."
    assert find_parts(tmp_path)["prefetch"].status == "open"
    assert keep("lab3.prefetch_ahead", first) == f"Kept as {FOLDER}/prefetch.py."
    assert find_parts(tmp_path)["prefetch"].status == "yours"
    keep("lab3.prefetch_ahead", written("def prefetch(ring):\n    return 2\n", "prefetch"))
    assert find_parts(tmp_path)["prefetch"].status == "open"


def test_a_folder_that_cannot_be_written_is_told_and_fails_no_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file" / "engine"))
    assert keep("lab3.layer_of", written("def layer_of(a, b):\n    return 1\n", "layer_of")).startswith("Not kept")
    assert keep("lab3.layer_of", 3) == "Not kept for your engine: a function or a class can be kept, not a int."


def test_parts_that_are_changed_broken_or_missing_are_each_named_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keep_parts(tmp_path, monkeypatch, without=("slot_of", "streaming_layers"))
    with (tmp_path / "layer_of.py").open("a") as file:
        file.write("# changed\n")
    (tmp_path / "ensure.py").write_text("import nowhere_at_all\n")
    (tmp_path / "release.py").write_text("def other():\n    pass\n")
    (tmp_path / "copy_engine.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "prefetch.py").write_bytes(b"\xff\xfe")
    found = find_parts(tmp_path)
    assert {name: found[name].status for name in ("slot_of", "layer_of", "ensure", "release", "copy_engine")} == {
        "slot_of": "missing", "layer_of": "changed", "ensure": "broken", "release": "broken", "copy_engine": "broken",
    }  # fmt: skip
    for name in ("slot_of", "layer_of", "ensure", "release", "copy_engine", "prefetch"):
        assert f"{name}.py" in found[name].note and found[name].note.endswith("."), found[name].note
        assert found[name].is_used == (name == "layer_of")


@pytest.mark.parametrize("content", ["", "[]", "{", '{"layer_of": 3, "slot_of": {"lab3.slot_of": null}}'])
def test_a_record_that_cannot_be_read_is_one_without_parts(tmp_path: Path, content: str) -> None:
    (tmp_path / "parts.json").write_text(content)
    (tmp_path / "layer_of.py").write_text("def layer_of(step, layers):\n    return 0\n")
    assert find_parts(tmp_path)["layer_of"].status == "open"


def test_every_part_has_a_name_of_its_own_and_checks_that_there_are() -> None:
    from xinfer_lab.grading import find_piece

    parts = [part for lab in LABS for part in parts_of(lab)]
    assert len({part.name for part in parts}) == len(parts)
    for part in parts:
        for check in part.checks:
            find_piece(check)


# ----------------------------------------------------------------------------------------------------------- it streams


def streamed(engine: Engine, models: Models, layers: int, pool: int, device: Any) -> Any:
    spec = tiny(layers)
    resident = models.resident(spec)
    with device, Checkpoint.open(models.path(spec)) as checkpoint:
        run = run_fixed(
            lambda device: QwenModel(engine.weights(checkpoint), device, engine.streaming(pool)),
            device,
            resident.tokens,
        )
        assert not device.findings()
    assert compare_logits(resident.logits, run.logits) == (True, 0.0)
    return run


@pytest.mark.parametrize(("layers", "pool"), [(6, 2), (7, 3), (7, 1)])
def test_an_engine_of_all_parts_streams_the_resident_bytes_and_nothing_is_lent(
    kept: Path, models: Models, layers: int, pool: int
) -> None:
    engine = Engine(kept)
    run = streamed(engine, models, layers, pool, EmulatedDevice())
    assert engine.lent == [] and run.uploads == layers * len(run.tokens)
    assert set(engine.used) == {"read_header", "tensor_ranges", "staging_ring", "copy_engine", "streaming_layers"}


def test_it_runs_on_threads_too(kept: Path, models: Models) -> None:
    streamed(Engine(kept), models, 6, 2, HostDevice(check=True))


@pytest.mark.parametrize(
    ("without", "lent"),
    [
        (("streaming_layers",), []),
        (("streaming_layers", "prefetch"), ["prefetch"]),
        (("staging_ring",), ["staging_ring"]),
        (("copy_engine", "read_header"), ["copy_engine", "staging_ring"]),
    ],
)
def test_what_is_missing_is_lent_and_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, models: Models, without: tuple[str, ...], lent: list[str]
) -> None:
    keep_parts(tmp_path, monkeypatch, without=without)
    engine = Engine(tmp_path)
    streamed(engine, models, 6, 2, EmulatedDevice())
    assert engine.lent == lent


def test_the_students_parts_are_what_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, models: Models) -> None:
    """A part that is wrong on purpose shows in the run: nothing of the course's stands in for it."""
    keep_parts(tmp_path, monkeypatch)
    path = tmp_path / "streaming_layers.py"
    text = path.read_text()
    assert "self.uploaded += 1" in text
    path.write_text(text.replace("self.uploaded += 1", "self.uploaded += 1\n            raise ZeroDivisionError"))
    with pytest.raises(ZeroDivisionError):
        streamed(Engine(tmp_path), models, 6, 2, EmulatedDevice())


def test_an_engine_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="there is no engine in"):
        Engine(tmp_path / "nowhere")


def test_no_part_holds_anything_of_the_courses_answers(kept: Path) -> None:
    """A part runs where the labs' judges and the course's own parts are out of reach."""
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from xinfer_lab.grading.denial import deny\nfrom xinfer_lab.grading.rooms import ALWAYS_DENIED\n"
        "from importlib import import_module\nsys.path.insert(0, sys.argv[1])\n"
        "with deny((*ALWAYS_DENIED, 'xinfer_lab.labs.lab3.parts', 'xinfer_lab.labs.lab5.parts')):\n"
        "    for path in sorted(Path(sys.argv[1]).glob('*.py')): import_module(path.stem)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(kept)], cwd=ROOT, check=True)
    assert set(json.loads((kept / "parts.json").read_text())) == {part.name for lab in LABS for part in parts_of(lab)}
