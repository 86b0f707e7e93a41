"""`xinfer-lab parity`: 0 only for equal bytes and nothing found; otherwise what differs, where, and why."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import Qwen2Config, Qwen2ForCausalLM

from tests.command_line import invoke, last_line, refused
from xinfer_lab.qwen2.synthetic import SyntheticSpec, write_checkpoint
from xinfer_lab.residency.host import PinnedLayers
from xinfer_lab.residency.streaming import StreamingLayers

PARITY_LINE = "streaming vs resident max abs diff = 0"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("models") / "six", SyntheticSpec(layers=6))


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """What transformers writes: sharded, bfloat16, tied."""
    torch.manual_seed(5)
    config = Qwen2Config(
        hidden_size=64, num_hidden_layers=5, num_attention_heads=4, num_key_value_heads=2, intermediate_size=160,
        vocab_size=320, max_position_embeddings=256, tie_word_embeddings=True,
    )  # fmt: skip
    directory = tmp_path_factory.mktemp("published") / "qwen2"
    saved = Qwen2ForCausalLM(config).to(torch.bfloat16)
    saved.save_pretrained(directory, max_shard_size="150KB")
    assert len(list(directory.glob("*.safetensors"))) > 1
    stored = json.loads((directory / "config.json").read_text())
    assert stored["tie_word_embeddings"]
    return directory


def test_the_last_line_is_the_parity_line(model):
    said = invoke("parity", model, "--stream-layers", 2, "--steps", 3)
    assert said.exit_code == 0
    assert last_line(said) == PARITY_LINE
    assert said.stderr == ""


def test_the_table_has_peak_memory_uploads_bytes_moved_and_hazards(model):
    said = invoke("parity", model, "--stream-layers", 2, "--steps", 3, "--serial")
    rows = {line.split("  ")[0]: line for line in said.stdout.splitlines()}
    assert " 0 " in rows["resident"]
    for name in ("serial, 1 slot", "streaming, 2 slots"):
        assert " 18 " in rows[name]
        assert "MiB" in rows[name]
    assert "serial vs resident max abs diff = 0" in said.stdout


@pytest.mark.parametrize("schedule", ["timed", "copies_first", "copies_last", "random(7)"])
def test_every_schedule_gives_the_same_bytes(model, schedule):
    assert last_line(invoke("parity", model, "--schedule", schedule, "--stream-layers", 4)) == PARITY_LINE


@pytest.mark.parametrize(
    "options", [["--host-memory", "staged"], ["--context", "64"], ["--tokens", "7,8,9"], ["--gpu", "h200"]]
)
def test_options_do_not_change_the_result(model, options):
    said = invoke("parity", model, "--stream-layers", 3, *options)
    assert (said.exit_code, last_line(said)) == (0, PARITY_LINE)


@pytest.mark.parametrize(("pool", "name"), [(1, "streaming, 2 slots"), (6, "streaming: all layers fit")])
def test_what_a_pool_becomes_is_said(model, pool, name):
    said = invoke("parity", model, "--stream-layers", pool, "--steps", 1)
    assert said.exit_code == 0
    assert name in said.stdout


def test_a_checkpoint_of_transformers_streams_with_equal_bytes(published):
    said = invoke("parity", published, "--stream-layers", 2, "--steps", 4)
    assert (said.exit_code, last_line(said)) == (0, PARITY_LINE)


def test_a_budget_limits_the_streaming_run_alone(model):
    streamed = ("parity", model, "--stream-layers", 2)
    assert invoke(*streamed, "--vram", "700KiB").exit_code == 0
    message = refused(invoke(*streamed, "--vram", "300KiB"))
    assert "300.00 KiB" in message and "slot[" in message


def test_nan_weights_are_no_parity_and_their_layer_is_named(model, tmp_path):
    damaged = tmp_path / "damaged"
    shutil.copytree(model, damaged)
    weights = load_file(damaged / "model.safetensors")
    weights["model.layers.3.mlp.up_proj.weight"][0, 0] = float("nan")
    save_file(weights, damaged / "model.safetensors", metadata={"format": "pt"})
    said = invoke("parity", damaged, "--steps", 2)
    assert said.exit_code == 1
    assert last_line(said) == "streaming vs resident max abs diff = nan"
    assert "all bytes are equal to those of the resident run, but some are NaN or infinite in both" in said.stdout
    assert (
        "from layer 3 of step 0 on: the checkpoint's model.layers.3.mlp.up_proj.weight holds such a value"
        in said.stdout
    )
    assert "difference in step" not in said.stdout


@pytest.mark.parametrize("kind", ["NaN", "inf"])
def test_a_model_that_overflows_is_not_told_as_a_difference(tmp_path, kind):
    model = write_checkpoint(tmp_path / "half", SyntheticSpec(layers=4, dtype="float16"))
    weights = load_file(model / "model.safetensors")
    if kind == "NaN":
        for name in ("gate", "up"):
            weights[f"model.layers.2.mlp.{name}_proj.weight"] *= 300
    else:
        weights["lm_head.weight"][7] *= 60000
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    said = invoke("parity", model, "--steps", 2)
    where = "layer 2" if kind == "NaN" else "the logits"
    assert said.exit_code == 1
    assert f"in both, from {where} of step 0 on: what comes before it and its weights are finite" in said.stdout
    assert "it overflows float16 (65504)" in said.stdout and "difference in step" not in said.stdout
    generated = invoke("generate", model, "--tokens", "1,2", "--temperature", 1)
    sentence = generated.stderr.splitlines()[-1].removeprefix("xinfer-lab: ")
    assert generated.exit_code == 2
    assert sentence.startswith("the logits hold NaN" if kind == "NaN" else "the largest of the logits is infinite")
    assert "xinfer-lab parity says from which layer on" in sentence and "damaged" not in sentence


def test_a_layer_that_arrives_damaged_is_named(model, monkeypatch):
    stage = PinnedLayers.stage

    def swapped(self, layer):
        return stage(self, 5 if layer == 4 else layer)

    monkeypatch.setattr(PinnedLayers, "stage", swapped)
    said = invoke("parity", model, "--steps", 2)
    assert said.exit_code == 1
    assert "first difference in step 0, after layer 4" in said.stdout
    assert last_line(said).startswith("streaming vs resident max abs diff = ")
    assert last_line(said) != PARITY_LINE


def without_a_wait(self, layer):
    slot = self._slots[self._order.ensure(layer) % len(self._slots)]
    for buffer in slot.buffers:
        buffer.assume_common()
    return slot.holding(layer)


@pytest.mark.parametrize("schedule", ["copies_first", "copies_last"])
def test_a_missing_wait_is_reported_whatever_the_bytes(model, monkeypatch, schedule):
    monkeypatch.setattr(StreamingLayers, "ensure", without_a_wait)
    said = invoke("parity", model, "--schedule", schedule, "--steps", 2)
    assert said.exit_code == 1
    assert "read after write" in said.stdout
    assert "the wait" in said.stdout and "copied" in said.stdout
    assert "model.py:" in said.stdout and "upload.py:" in said.stdout


def test_equal_bytes_with_a_hazard_are_a_failure(model, monkeypatch):
    # Copies first: every byte is there in time, by luck.
    monkeypatch.setattr(StreamingLayers, "ensure", without_a_wait)
    said = invoke("parity", model, "--schedule", "copies_first", "--steps", 1, "--stream-layers", 5)
    assert PARITY_LINE in said.stdout
    assert said.exit_code == 1


def test_a_forgotten_assume_common_is_a_failure(model, monkeypatch):
    def forgetful(self, layer):
        slot = self._slots[self._order.ensure(layer) % len(self._slots)]
        self._device.direct_queue.wait(self._engine.copied, slot.ready)
        return slot.holding(layer)

    monkeypatch.setattr(StreamingLayers, "ensure", forgetful)
    said = invoke("parity", model, "--steps", 1)
    assert said.exit_code == 1
    assert "COMMON" in said.stdout


def test_a_residency_that_waits_too_early_is_stopped_and_said(model, monkeypatch):
    def early(self, layer):
        slot = self._slots[self._order.ensure(layer) % len(self._slots)]
        self._device.direct_queue.wait(self._engine.copied, slot.ready + 100)
        return slot.holding(layer)

    monkeypatch.setattr(StreamingLayers, "ensure", early)
    said = invoke("parity", model, "--steps", 1)
    assert said.exit_code == 1
    assert said.stdout.startswith("The run was stopped: ")


@pytest.mark.cuda
def test_on_cuda_too(model):
    said = invoke("parity", model, "--device", "cuda", "--serial")
    assert (said.exit_code, last_line(said)) == (0, PARITY_LINE)


@pytest.mark.cuda
def test_a_missing_wait_is_reported_on_cuda(model, monkeypatch):
    monkeypatch.setattr(StreamingLayers, "ensure", without_a_wait)
    said = invoke("parity", model, "--device", "cuda", "--steps", 2)
    assert said.exit_code == 1
    assert "read after write" in said.stdout


def test_on_threads_of_this_machine_layers_come_from_the_disk_and_times_are_measured(model):
    said = invoke(
        "parity", model, "--stream-layers", 2, "--steps", 3, "--device", "host", "--host-memory", "registered"
    )
    assert said.exit_code == 0, said.stderr
    assert last_line(said) == PARITY_LINE
    assert "as measured" in said.stdout and "virtual clock" not in said.stdout
    both = refused(invoke("parity", model, "--device", "host", "--schedule", "timed"))
    assert "--schedule belongs to the emulated device" in both
