"""A student's engine: parts are kept as they were written, put together, and give the resident bytes."""

from __future__ import annotations

import json
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
from xinfer_lab.engine.loading import PartError
from xinfer_lab.grading.keep import FOLDER
from xinfer_lab.grading.part import parts_of
from xinfer_lab.grading.rooms import LABS
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
    assert set(engine.used) == {
        "read_header", "tensor_ranges", "layer_of", "slot_of", "staging_ring", "copy_engine", "streaming_layers",
    }  # fmt: skip


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
    with pytest.raises(PartError, match=r"^your part stopped in streaming_layers.py, line \d+: ZeroDivisionError\.$"):
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
