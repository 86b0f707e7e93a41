"""The trained model that comes with the package: readable text, and the same bytes streamed as resident."""

import pytest
import torch

from tests.command_line import invoke, refused
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.models import TRAINED, trained_model
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.qwen2.reference import ReferenceModel
from xinfer_lab.qwen2.tokenizer import Tokenizer
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.parity import compare_logits, greedy_run, run_fixed

SHAKESPEARE = trained_model("shakespeare")
# From The Tempest, which was held out.
REVELS = """Our revels now are ended. These our actors,
As I foretold you, were all spirits and
Are melted into air, into thin air:
And, like the baseless fabric of this vision,
"""


def test_it_is_small_and_has_six_layers_of_bytes():
    files = {path.name: path.stat().st_size for path in SHAKESPEARE.iterdir()}
    assert sum(files.values()) < 5_000_000 and "README.md" in files
    with Checkpoint.open(SHAKESPEARE) as checkpoint:
        config = checkpoint.config
    assert (config.num_hidden_layers, config.vocab_size, config.dtype) == (6, 256, torch.bfloat16)


def test_it_expects_the_next_byte_of_a_text_that_it_never_saw():
    tokens = torch.tensor([Tokenizer.open(SHAKESPEARE).encode(REVELS)])
    with Checkpoint.open(SHAKESPEARE) as checkpoint:
        model = ReferenceModel(checkpoint, capacity=tokens.shape[1])
        logits = model.forward(tokens[:, :-1], tokens.shape[1] - 1)
    loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), tokens[0, 1:])
    assert loss < 1.9, "nats a byte; guessing blindly among 256 would cost 5.5, knowing how often each occurs 3.3"


def test_streamed_and_resident_bytes_are_equal():
    prompt = torch.tensor([Tokenizer.open(SHAKESPEARE).encode("ROMEO.\n")])
    with EmulatedDevice() as device:
        resident = greedy_run(lambda on: QwenModel.load(SHAKESPEARE, on, context=64), device, prompt, steps=4)
    with EmulatedDevice(check=True) as device:
        streamed = run_fixed(
            lambda on: QwenModel.load_streaming(SHAKESPEARE, on, pool=2, context=64), device, resident.tokens
        )
    assert compare_logits(resident.logits, streamed.logits) == (True, 0.0) and not streamed.hazards


def test_the_command_line_knows_it_by_name_and_writes_the_same_text_streamed_and_resident():
    arguments = ["generate", "shakespeare", "--prompt", "KING.\n", "--max-new-tokens", "40", "--device", "emulated"]
    drawn = ["--temperature", "0.7", "--seed", "3"]
    resident, streamed = invoke(*arguments, *drawn), invoke(*arguments, *drawn, "--stream-layers", "2")
    assert resident.exit_code == streamed.exit_code == 0
    assert resident.stdout == streamed.stdout and len(resident.stdout) > 30
    assert sum(char.isalpha() or char in " \n,.;:'!?-[]" for char in resident.stdout) / len(resident.stdout) > 0.95


def test_a_directory_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shakespeare").mkdir()
    assert "no config.json there" in refused(invoke("generate", "shakespeare", "--prompt", "A"))


def test_a_model_that_is_not_there_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError, match=r"milton.*shakespeare"):
        trained_model("milton")
    assert list(TRAINED) == ["shakespeare"]
