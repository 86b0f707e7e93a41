"""A part that cannot be used, or fails as it runs, ends in one sentence that names it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.engines import keep_lab, names_of, written
from tests.models import Models, tiny
from xinfer_lab.course.sandbox import open_sandbox
from xinfer_lab.device.device import Device
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import DeviceError
from xinfer_lab.device.records import Copy
from xinfer_lab.engine.assemble import Engine
from xinfer_lab.engine.loading import PartError, asked_by
from xinfer_lab.engine.parts import find_parts, kept_parts
from xinfer_lab.engine.use import my_layer_bytes, with_my_parts
from xinfer_lab.grading.keep import FOLDER, VARIABLE, keep
from xinfer_lab.grading.rooms import LABS, allowed_in
from xinfer_lab.labs.lab3.given.ring import SlotRing
from xinfer_lab.qwen2 import Checkpoint
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.host import PinnedLayers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.parity import compare_logits, run_fixed
from xinfer_lab.residency.source import LayerSource
from xinfer_lab.residency.weights import CheckpointWeights, ModelWeights
from xinfer_lab.views.labels import slot_of_buffer

LAYER_OF = "def layer_of(step, layers):\n    return step % layers\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An engine with one part of the student's, `layer_of`."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert keep("lab3.layer_of", written(LAYER_OF, "layer_of")).startswith("Kept as")
    return tmp_path


CIRCLE = (
    "from pathlib import Path\nfrom xinfer_lab.engine.parts import find_parts\n"
    "found = find_parts(Path(__file__).parent)['layer_of']\nassert found.code, found.note\n"
)


@pytest.mark.parametrize(
    ("text", "status", "note"),
    [
        (LAYER_OF + "# mine", "changed", "layer_of.py was changed after its check passed: run the check in Lab 3"),
        ("import nowhere_at_all", "broken", "layer_of.py cannot be imported: ModuleNotFoundError: No module named"),
        ("def layer_of(:", "broken", "layer_of.py cannot be imported: SyntaxError: invalid syntax"),
        ("raise SystemExit(3)", "broken", "layer_of.py cannot be imported: SystemExit: 3"),
        ("def f():\n    f()\nf()", "broken", "layer_of.py cannot be imported: RecursionError: maximum recursion depth"),
        (CIRCLE, "broken", "layer_of.py cannot be imported: AssertionError: layer_of.py cannot be imported: "
                           "ImportError: it imports itself, by way of another part"),
        ("def other(): pass", "broken", "layer_of.py defines no layer_of"),
        ("layer_of = 3", "broken", "layer_of.py defines no layer_of"),
        ("def layer_of(step): pass", "broken",
         "layer_of.py cannot be called as layer_of(step, layers): too many positional arguments"),
        ("\0", "broken", "layer_of.py cannot be imported: "),
        (None, "missing", "layer_of.py is not there; it is kept when its check in Lab 3 passes"),
    ],
)  # fmt: skip
def test_what_became_of_a_part_is_a_sentence_that_names_it(
    folder: Path, text: str | None, status: str, note: str
) -> None:
    path = folder / "layer_of.py"
    path.write_text(text) if text is not None else path.unlink()
    found = find_parts(folder)["layer_of"]
    assert (found.status, found.is_used) == (status, status == "changed")
    assert found.note.startswith(note) and found.note.endswith(".") and "\n" not in found.note
    assert not [name for name in sys.modules if name.startswith("my_engine_part_")]


def test_a_part_that_is_no_text_or_no_file_is_broken(folder: Path) -> None:
    path = folder / "layer_of.py"
    path.write_bytes(b"\xff\xfe")
    assert kept_parts(folder)["layer_of"].note == "layer_of.py cannot be read: it is not UTF-8."
    path.unlink()
    path.mkdir()
    assert kept_parts(folder)["layer_of"].note == "layer_of.py cannot be read: Is a directory."


def test_a_class_without_a_method_that_the_machine_calls_is_broken(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "class CopyEngine:\n    def __init__(self, device, ring, layout):\n        pass\n"
    for check in ("lab2.upload", "lab2.upload_async"):
        keep(check, written(text, "CopyEngine"))
    assert find_parts(folder)["copy_engine"].note == "copy_engine.py: CopyEngine has no method upload(layer, slot)."


def test_a_change_within_a_second_and_of_the_same_length_is_seen(folder: Path) -> None:
    """Python's own import goes by a file's time and size, and would run what it compiled before."""
    path = folder / "layer_of.py"
    for number in (1, 2):
        path.write_text(f"def layer_of(step, layers):\n    return {number}\n")
        assert find_parts(folder)["layer_of"].code(0, 0) == number
    assert not (folder / "__pycache__").exists()


# ------------------------------------------------------------------------------------------------------ while it runs


def run(engine: Engine, models: Models) -> None:
    spec = tiny(4)
    with EmulatedDevice() as device, Checkpoint.open(models.path(spec)) as checkpoint:
        run_fixed(
            lambda device: QwenModel(engine.weights(checkpoint), device, engine.streaming(2)),
            device,
            models.resident(spec).tokens,
        )


def test_what_cannot_be_used_is_refused_where_it_is_to_run_and_lent_where_all_may_be(
    folder: Path, models: Models
) -> None:
    (folder / "layer_of.py").write_text("import nowhere_at_all")
    with pytest.raises(PartError, match=r"No module named 'nowhere_at_all'\. Mend it, or delete the file"):
        run(Engine(folder), models)
    lent = Engine(folder, lent=True)
    run(lent, models)
    assert "layer_of" in lent.lent and "No module named 'nowhere_at_all'." in lent.told()


def test_a_part_that_was_changed_runs_and_is_told(folder: Path, models: Models) -> None:
    with (folder / "layer_of.py").open("a") as file:
        file.write("# mine\n")
    engine = Engine(folder)
    run(engine, models)
    assert engine.used["layer_of"] and "layer_of.py was changed after its check passed" in engine.told()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return 1 // 0", "your part stopped in layer_of.py, line 3: ZeroDivisionError: "),
        ("raise SystemExit", "your part stopped in layer_of.py, line 3: SystemExit"),
        ("return 'one'", "your engine's begin stopped: ValueError: invalid literal for int"),
    ],
)
def test_a_part_that_fails_as_it_runs_is_named_with_its_line(
    folder: Path, models: Models, body: str, said: str
) -> None:
    (folder / "layer_of.py").write_text(f"# mine\ndef layer_of(step, layers):\n    {body}\n")
    with pytest.raises(PartError) as failed:
        run(Engine(folder), models)
    assert str(failed.value).startswith(said)


def test_what_a_device_refuses_is_told_with_the_line_that_asked(folder: Path, models: Models) -> None:
    keep(
        "lab3.ensure",
        written("def ensure(ring, layer):\n    ring.device.direct_queue.wait(ring.engine.copied, 9)\n", "ensure"),
    )
    with pytest.raises(DeviceError) as failed:
        run(Engine(folder), models)
    assert asked_by(failed.value) == " (asked for by ensure.py, line 4)"


def test_a_reader_that_places_tensors_wrongly_is_named(folder: Path, models: Models) -> None:
    header = "def read_header(file):\n    return {}, 0\n"
    ranges = (
        "def tensor_ranges(header, data_start, file_size):\n"
        "    return {'model.layers.0.input_layernorm.weight': (0, 3)}\n"
    )
    for check in ("lab1.read_header", "lab1.refuse_header"):
        keep(check, written(header, "read_header"))
    for check in ("lab1.tensor_ranges", "lab1.refuse_ranges"):
        keep(check, written(ranges, "tensor_ranges"))
    with pytest.raises(PartError, match=r"^tensor_ranges\.py places model\.layers\.0\.input_layernorm"):
        run(Engine(folder), models)


@pytest.mark.parametrize("only", ["lab1", "lab2", "lab3", "lab4"])
def test_labs_may_be_solved_in_any_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models: Models, only: str
) -> None:
    keep_lab(only, tmp_path, monkeypatch)
    engine = Engine(tmp_path)
    run(engine, models)
    own = {name for name, yours in engine.used.items() if yours}
    assert (
        own
        == {
            "lab1": {"read_header", "tensor_ranges"},
            "lab2": {"staging_ring", "copy_engine"},
            "lab3": {"layer_of", "slot_of", "wait_until_read", "prefetch", "ensure", "release"},
            "lab4": {"streaming_layers"},
        }[only]
    )


# ------------------------------------------------------------------------------------------------- in later labs' cells


def test_later_labs_use_the_parts_that_passed_and_say_whose_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models: Models, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_lab("lab2", tmp_path, monkeypatch)
    keep("lab3.slot_of", written("def slot_of(step, layers, pool):\n    return (step + 1) % pool\n", "slot_of"))
    keep("lab1.layer_bytes", written("def layer_bytes(config):\n    return config['hidden_size']\n", "layer_bytes"))
    names = names_of("lab4")
    ring = with_my_parts(names["StreamingLayers"])
    assert capsys.readouterr().out.endswith(
        "Yours, from earlier labs: slot_of (Lab 3), copy_engine (Lab 2), staging_ring (Lab 2). "
        "Lent by the course: layer_of (Lab 3).\n"
    )
    spec = tiny(5)
    with EmulatedDevice() as device, Checkpoint.open(models.path(spec)) as checkpoint:

        def make(device: Device, weights: ModelWeights) -> LayerSource:
            layout = layer_layout(weights.config)
            made: LayerSource = ring(device, layout, weights.config.dtype, PinnedLayers(device, layout, 5), 5, 2)
            return made

        run = run_fixed(
            lambda on: QwenModel(CheckpointWeights(checkpoint), on, make), device, models.resident(spec).tokens
        )
        uploads = [
            record for record in device.stream if isinstance(record, Copy) and record.label.startswith("upload layer")
        ]
        assert slot_of_buffer(uploads[0].dst.buffer) == 1, "placed by the student's slot_of"
        assert not device.findings()
    assert compare_logits(models.resident(spec).logits, run.logits) == (True, 0.0)
    assert my_layer_bytes()(spec.config()) == spec.hidden
    assert capsys.readouterr().out == "Yours, from earlier labs: layer_bytes (Lab 1).\n"


def test_without_an_engine_later_labs_have_the_courses_parts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where work is marked: nothing is read, not even a my_engine in the working folder."""
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "layer_bytes.py").write_text("raise SystemExit('run')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "")
    config = tiny(4).config()
    assert my_layer_bytes()(config) == layer_layout(config).weight_nbytes
    assert with_my_parts(SlotRing) is not None
    assert capsys.readouterr().out == (
        "Lent by the course: layer_bytes (Lab 1).\nLent by the course: copy_engine (Lab 2), staging_ring (Lab 2).\n"
    )


def test_where_work_is_marked_no_engine_is_known_and_no_answer_may_ask_for_one(folder: Path, tmp_path: Path) -> None:
    """The folder is named in this process, as it may be where an instructor marks."""
    assert os.environ[VARIABLE]
    assert VARIABLE not in open_sandbox("auto").environment(tmp_path / "view", tmp_path / "scratch")
    for lab in LABS:
        allowed = allowed_in(f"{lab}.gate")
        assert allowed is not None
        for name in ("xinfer_lab.engine.use", "xinfer_lab.engine.parts", "xinfer_lab.engine"):
            assert name not in allowed, lab
