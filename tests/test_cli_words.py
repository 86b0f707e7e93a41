"""What commands say besides their results: budgets, clamped pools, made-up weights, flags, versions."""

import pytest
import torch
from safetensors.torch import save_file

from tests.command_line import invoke, refused
from xinfer_lab.cli.budget import least_memory
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.qwen2.synthetic import SyntheticSpec, is_made_up, write_checkpoint


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("models") / "six", SyntheticSpec(layers=6))


@pytest.mark.parametrize("pool", [2, 3, 4])
def test_what_is_called_enough_is_enough_and_a_layer_less_is_not(model, pool):
    config = Qwen2Config.from_file(model)
    needed = least_memory(config, context=5, chunk=3, pool=pool)
    options = ("generate", model, "--tokens", "1,2,3", "--max-new-tokens", 3, "--stream-layers", pool)
    assert invoke(*options, "--vram", needed).exit_code == 0
    message = refused(invoke(*options, "--vram", needed - layer_layout(config).nbytes))
    assert f"with --stream-layers {pool}" in message


@pytest.mark.parametrize("command", [["parity"], ["generate", "--tokens", "1"], ["trace", "--out", "trace.json"]])
def test_a_budget_that_is_too_small_is_told_the_least_that_works(model, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    message = refused(invoke(command[0], model, *command[1:], "--stream-layers", 3, "--vram", "1KiB"))
    assert "with --stream-layers 2, the fewest slots" in message and " bytes)" in message
    assert "embedding, norm, head" in message and "resident needs" not in message
    assert list(tmp_path.iterdir()) == []


def test_a_simulation_is_told_the_least_too():
    message = refused(invoke("simulate", "72b", "--vram", "4GiB"))
    assert "bytes) with --stream-layers 2" in message and "budget of 4.00 GiB" in message


def test_everything_resident_names_what_streaming_would_take(model):
    message = refused(invoke("generate", model, "--tokens", "1", "--vram", "300KiB"))
    assert "with all layers resident" in message and "with --stream-layers 2" in message


def test_one_slot_is_taken_for_two_and_said(model, tmp_path):
    for arguments in (["parity", model], ["simulate", "7b"], ["trace", model, "--out", tmp_path / "t.json"]):
        assert "--stream-layers 1: 2 slots are used" in invoke(*arguments, "--stream-layers", 1).stdout
        assert "slots are used" not in invoke(*arguments, "--stream-layers", 2).stdout
    assert "2 slots are used" in invoke("generate", model, "--tokens", "1", "--stream-layers", 1).stderr


def test_text_of_made_up_weights_is_said_to_mean_nothing(model, tmp_path):
    assert "means nothing" in invoke("generate", model, "--prompt", "a", "--max-new-tokens", 2).stderr
    assert "means nothing" not in invoke("generate", model, "--tokens", "1", "--max-new-tokens", 2).stderr
    assert is_made_up(model) and is_made_up(model / "model.safetensors") and not is_made_up(tmp_path)


def test_heads_that_do_not_divide_can_have_a_width_of_their_own(tmp_path):
    assert "--head-dim" in refused(invoke("make-checkpoint", tmp_path / "a", "--heads", 3, "--kv-heads", 1))
    made = invoke("make-checkpoint", tmp_path / "b", "--heads", 3, "--kv-heads", 1, "--head-dim", 32)
    assert made.exit_code == 0, made.stderr
    assert Qwen2Config.from_file(tmp_path / "b").head_dim == 32


def test_a_context_that_is_too_small_says_how_it_is_counted(model):
    options = ("generate", model, "--tokens", "1,2", "--max-new-tokens", 5, "--context", 3)
    message = refused(invoke(*options))
    assert "--context of 6" in message and "not read again" in message
    assert "not read again" in refused(invoke("parity", model, "--context", 5))


def test_a_file_that_is_no_safetensors_file_is_told_so_first(tmp_path):
    (tmp_path / "bad.safetensors").write_bytes(b"junk" * 10)
    message = refused(invoke("parity", tmp_path / "bad.safetensors"))
    assert "bad.safetensors" in message and "config.json" not in message
    save_file({"w": torch.zeros(2)}, tmp_path / "good.safetensors")
    assert "beside the file" in refused(invoke("parity", tmp_path / "good.safetensors"))


def test_flags_show_no_type_and_gpus_their_default():
    said = invoke("parity", "--help").stdout
    assert (
        "bool" not in said and "--serial" in said and "default" in said.partition("--gpu")[2].partition("--prompt")[0]
    )
    assert "bool" not in invoke("--help").stdout


def test_the_version_is_said():
    said = invoke("--version")
    assert said.exit_code == 0 and said.stdout.startswith("xinfer-lab")


def test_a_trace_says_little_and_that_it_replaced_a_file(model, tmp_path):
    out = tmp_path / "t.json"
    first, second = (invoke("trace", model, "--out", out).stdout for _ in range(2))
    assert "(replaced)" not in first and "(replaced)" in second
    assert max(map(len, first.splitlines())) < 200
