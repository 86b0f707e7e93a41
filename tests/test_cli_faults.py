"""Bad input is one clear sentence on standard error and exit status 2, never a traceback."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.command_line import execute, invoke, refused
from xinfer_lab.cli.faults import CommandError, fault_sentence
from xinfer_lab.device.errors import OutOfDeviceMemory
from xinfer_lab.qwen2.errors import CheckpointError
from xinfer_lab.qwen2.synthetic import SyntheticSpec, write_checkpoint
from xinfer_lab.residency.errors import RequestError

NAME = "model.layers.2.mlp.up_proj.weight"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("models") / "six", SyntheticSpec(layers=6))


@pytest.fixture
def damaged(model, tmp_path):
    """A copy to spoil."""
    return shutil.copytree(model, tmp_path / "damaged")


def edit_weights(directory, change):
    weights = load_file(directory / "model.safetensors")
    change(weights)
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})


def edit_config(directory, **changes):
    file = directory / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


# ---------------------------------------------------------------------------------------------------------- checkpoints

READERS = (["parity"], ["generate", "--tokens", "1"], ["trace", "--out", "trace.json"])


@pytest.mark.parametrize("command", READERS, ids=lambda command: command[0])
def test_no_such_checkpoint(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = refused(invoke(command[0], tmp_path / "nowhere", *command[1:]))
    assert "nowhere" in message and "no such file" in message
    assert list(tmp_path.iterdir()) == []


def test_a_directory_without_a_checkpoint(tmp_path):
    assert "config.json" in refused(invoke("parity", tmp_path))


def test_truncated_weights(damaged):
    file = damaged / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])
    assert "truncated" in refused(invoke("parity", damaged))


def test_an_empty_weight_file(damaged):
    (damaged / "model.safetensors").write_bytes(b"")
    assert "truncated" in refused(invoke("generate", damaged, "--tokens", "1"))


def test_another_kind_of_model(damaged):
    edit_config(damaged, model_type="llama")
    assert "llama" in refused(invoke("parity", damaged))


def test_a_config_that_is_no_json(damaged):
    (damaged / "config.json").write_text("{")
    assert "not valid JSON" in refused(invoke("simulate", damaged))


def test_a_missing_tensor(damaged):
    edit_weights(damaged, lambda weights: weights.pop(NAME))
    message = refused(invoke("parity", damaged))
    assert NAME in message and "missing" in message


def test_a_misshaped_tensor(damaged):
    edit_weights(damaged, lambda weights: weights.update({NAME: torch.zeros(3, 5)}))
    message = refused(invoke("parity", damaged))
    assert NAME in message and "[3, 5]" in message


# -------------------------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["parity", "MODEL", "--stream-layers", 0], "at least 2 slots, not 0"),
        (["parity", "MODEL", "--stream-layers", -3], "at least 2 slots, not -3"),
        (["generate", "MODEL", "--tokens", "1", "--stream-layers", 0], "at least 2 slots"),
        (["trace", "MODEL", "--out", "t.json", "--stream-layers", 0], "at least 2 slots"),
        (["simulate", "7b", "--stream-layers", 0], "at least 2 slots"),
        (["parity", "MODEL", "--stream-layers", "two"], "--stream-layers"),
        (["parity", "MODEL", "--steps", 0], "--steps"),
        (["parity", "MODEL", "--context", 5], "context of 11"),
        (["parity", "MODEL", "--context", 99999], "32768"),
        (["parity", "MODEL", "--device", "gpu"], "choose auto, emulated, host, cuda"),
        (["parity", "MODEL", "--device", "cuda:x"], "choose auto, emulated, host, cuda"),
        (["parity", "MODEL", "--device", "cuda", "--schedule", "timed"], "--schedule belongs to the emulated device"),
        (["trace", "MODEL", "--out", "t.json", "--device", "cuda", "--gpu", "h200"], "--gpu belongs to the emulated"),
        (["parity", "MODEL", "--schedule", "backwards"], "copies_first"),
        (["parity", "MODEL", "--gpu", "abacus"], "rtx4090"),
        (["simulate", "7b", "--gpu", "abacus"], "rtx4090"),
        (["parity", "MODEL", "--host-memory", "tape"], "staged"),
        (["parity", "MODEL", "--vram", "much"], "8GiB"),
        (["parity", "MODEL", "--vram", "300KiB"], "budget of 300.00 KiB of device memory is"),
        (["parity", "MODEL", "--stream-layers", "2", "--vram", "300KiB"], "budget of 300.00 KiB"),
        (["generate", "MODEL", "--tokens", "1", "--vram", "300KiB"], "budget of 300.00 KiB of device memory is"),
        (["simulate", "72b", "--vram", "4GiB"], "budget of 4.00 GiB"),
        (["simulate", "72b", "--stream-layers", 80], "budget of 24.00 GiB"),
        (["simulate", "71b"], "72b"),
        (["parity", "MODEL", "--tokens", "1,256"], "from 0 to 255, but 256"),
        (["parity", "MODEL", "--tokens", "1,-2"], "'-2' is none"),
        (["parity", "MODEL", "--tokens", ""], "such as 1,2,3"),
        (["parity", "MODEL", "--tokens", "1", "--prompt", "a"], "exclude each other"),
        (["generate", "MODEL"], "--tokens 1,2,3"),
        (["generate", "MODEL", "--prompt", ""], "no tokens"),
        (["generate", "MODEL", "--tokens", "1", "--max-new-tokens", 0], "--max-new-tokens"),
        (["generate", "MODEL", "--tokens", "1", "--temperature", -1], "--temperature"),
        (["generate", "MODEL", "--tokens", "1", "--temperature", "nan"], "--temperature"),
        (["generate", "MODEL", "--tokens", "1", "--top-k", 3], "--temperature above 0"),
        (["generate", "MODEL", "--tokens", "1", "--temperature", 1, "--top-p", 1.5], "--top-p"),
        (["generate", "MODEL", "--tokens", "1,2", "--context", 8], "--context of 33"),
        (["generate", "MODEL", "--tokens", "1", "--max-new-tokens", 40000], "32768"),
        (["make-checkpoint", "OUT", "--heads", 3], "multiple of heads"),
        (["make-checkpoint", "OUT", "--layers", 0], "num_hidden_layers"),
        (["make-checkpoint", "OUT", "--dtype", "int8"], "float32"),
        (["make-checkpoint", "OUT", "--shards", 0], "shards"),
        (["make-checkpoint", "OUT", "--layers", 80, "--hidden", 2**17, "--intermediate", 2**17], "free"),
        (["make-checkpoint", "MODEL/config.json"], "this is a file"),
        (["trace", "MODEL", "--out", "MODEL"], "is a directory"),
        (["trace", "MODEL", "--out", "MODEL/none/trace.json"], "cannot be written"),
        (["trace", "MODEL"], "--out"),
        (["parity"], "MODEL"),
        (["no-such-command"], "no-such-command"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_bad_input_is_one_sentence(model, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    places = {"MODEL": str(model), "OUT": str(tmp_path / "out")}
    given = [str(argument) for argument in arguments]
    for word, place in places.items():
        given = [argument.replace(word, place) for argument in given]
    assert words in refused(invoke(*given))
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
@pytest.mark.parametrize("command", READERS, ids=lambda command: command[0])
def test_cuda_without_cuda(model, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = refused(invoke(command[0], model, *command[1:], "--device", "cuda"))
    assert "no CUDA device" in message and "emulated" in message


@pytest.mark.parametrize("index", [0, 3])
def test_a_cuda_device_that_is_not_there(model, monkeypatch, index):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: index)
    assert f"no CUDA device cuda:{index}" in refused(invoke("parity", model, "--device", f"cuda:{index}"))


def test_text_without_a_tokenizer_proposes_tokens(damaged):
    (damaged / "tokenizer.json").unlink()
    for command in ("generate", "parity"):
        message = refused(invoke(command, damaged, "--prompt", "hello"))
        assert "tokenizer.json" in message and "--tokens 1,2,3" in message


def test_a_directory_with_other_files_is_not_written_into(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert "notes.txt" in refused(invoke("make-checkpoint", tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


# ----------------------------------------------------------------------------------------------------------- for real


@pytest.mark.parametrize("arguments", [["parity", "no-such-model"], ["frobnicate"]], ids=" ".join)
def test_a_real_process_says_one_sentence_and_leaves_with_2(arguments):
    said = execute(*arguments)
    assert said.returncode == 2
    assert said.stdout == ""
    assert len(said.stderr.splitlines()) == 1
    assert "Traceback" not in said.stderr


# ---------------------------------------------------------------------------------------------------------- the mapping


def test_an_error_of_the_programs_own_keeps_its_traceback(model, monkeypatch):
    from xinfer_lab.residency.model import QwenModel

    def broken(*_arguments, **_options):
        raise KeyError("a bug")

    monkeypatch.setattr(QwenModel, "__init__", broken)
    with pytest.raises(KeyError):
        invoke("parity", model)


@pytest.mark.parametrize(
    "error", [ValueError("inside"), RuntimeError("inside"), KeyError("inside"), AssertionError()], ids=repr
)
def test_what_is_nobodys_bad_input_has_no_sentence(error):
    assert fault_sentence(error) is None


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (CommandError("this cannot be"), "this cannot be."),
        (RequestError("two\nlines"), "two lines."),
        (CheckpointError("a\x1b[31mred"), "a [31mred."),
        (PermissionError(13, "Permission denied", "/x"), "/x: permission denied."),
        (OSError(28, "No space left on device"), "No space left on device."),
        (
            MemoryError(),
            "memory ran out (no details); free some, or use a smaller model, fewer slots or a shorter context.",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_what_is_said(error, sentence):
    assert fault_sentence(error) == sentence


def test_running_out_of_memory_names_who_holds_it():
    assert "kv 5 B" in fault_sentence(OutOfDeviceMemory("slot", 9, 5, 10, {"kv": 5}))


def test_torchs_ways_to_run_out_of_memory_are_known():
    for said in (
        "CUDA out of memory. Tried to allocate 2 GiB",
        "DefaultCPUAllocator: can't allocate memory: you tried",
    ):
        assert fault_sentence(RuntimeError(said)).startswith("memory ran out")
