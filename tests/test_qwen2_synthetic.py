"""Made-up checkpoints: what they hold, that they are the same everywhere, what is never overwritten."""

import hashlib
import json
import os
from dataclasses import asdict, replace

import pytest
import torch
import transformers
from safetensors import SafetensorError
from safetensors.torch import load_file

from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.qwen2.errors import CheckpointError, ConfigError
from xinfer_lab.qwen2.reference import ReferenceModel
from xinfer_lab.qwen2.synthetic import SyntheticSpec, synthetic_tensor, write_checkpoint
from xinfer_lab.residency.weights import SMALL as SMALL_BYTES
from xinfer_lab.residency.weights import SyntheticWeights

SMALL = SyntheticSpec(layers=2, hidden=16, heads=2, kv_heads=1, intermediate=24, vocab=256)


def contents(directory):
    return {file.name: file.read_bytes() for file in sorted(directory.iterdir())}


def weights(directory):
    with Checkpoint.open(directory) as checkpoint:
        return {name: checkpoint.tensor(name).clone() for name in checkpoint.names()}


@pytest.mark.parametrize(
    "dtype, digest",
    [
        ("float32", "8b9dca2062eacb34609b953d25f90cb4122bc2fcee6336c1ae87622199378d47"),
        ("bfloat16", "dbb3a23f22d19e47495e182ef979d9906f8809802255003158078ac730968fd5"),
    ],
)
def test_the_bytes_are_the_same_on_every_machine(tmp_path, dtype, digest):
    directory = write_checkpoint(tmp_path / "model", replace(SMALL, dtype=dtype))
    seen = hashlib.sha256()
    for name, tensor in sorted(weights(directory).items()):
        seen.update(name.encode() + tensor.view(-1).view(torch.uint8).numpy().tobytes())
    assert seen.hexdigest() == digest


def test_twice_the_same_spec_is_twice_the_same_files(tmp_path):
    first, second = (write_checkpoint(tmp_path / name, replace(SMALL, shards=3)) for name in "ab")
    assert contents(first) == contents(second)


def test_the_seed_changes_every_weight(tmp_path):
    first, second = (weights(write_checkpoint(tmp_path / str(seed), replace(SMALL, seed=seed))) for seed in (0, 1))
    assert all(not torch.equal(first[name], second[name]) for name in first)


def test_every_layer_is_distinct(tmp_path):
    tensors = weights(write_checkpoint(tmp_path / "model", SyntheticSpec()))
    by_shape = {}
    for name, tensor in tensors.items():
        by_shape.setdefault(tensor.shape, []).append((name, tensor))
    for same in by_shape.values():
        for i, (first, one) in enumerate(same):
            assert not any(torch.equal(one, other) for _, other in same[i + 1 :]), first


def test_weights_made_when_asked_for_are_those_of_the_files_and_small_ones_are_each_callers_own(tmp_path):
    spec = replace(SMALL, vocab=2048, seed=7)
    made, files = SyntheticWeights(spec.config(), spec.seed), weights(write_checkpoint(tmp_path / "model", spec))
    sizes = {name: made.nbytes(name) for name in files}
    assert min(sizes.values()) < SMALL_BYTES < max(sizes.values())
    for name, tensor in files.items():
        wanted = tensor.view(-1).view(torch.uint8)
        assert torch.equal(made.bytes(name), wanted)
        if sizes[name] <= SMALL_BYTES:
            made.bytes(name).fill_(0)
        assert torch.equal(SyntheticWeights(spec.config(), spec.seed).bytes(name), wanted)


def test_a_layer_does_not_depend_on_how_many_there_are():
    name, shape = "model.layers.1.mlp.gate_proj.weight", (24, 16)
    two, three = (synthetic_tensor(name, shape, replace(SMALL, layers=count).config(), 0) for count in (2, 3))
    assert torch.equal(two, three)


@pytest.mark.parametrize(
    "spec",
    [
        SMALL,
        replace(SMALL, shards=4, tied=True, dtype="float16"),
        replace(SMALL, shards=27),
        replace(SMALL, head_dim=24, vocab=40),
    ],
)
def test_our_reader_and_theirs_read_what_was_asked_for(tmp_path, spec):
    directory = write_checkpoint(tmp_path / "model", spec)
    with Checkpoint.open(directory) as checkpoint:
        assert checkpoint.config == spec.config()
        ours = {name: checkpoint.tensor(name).clone() for name in checkpoint.names()}
    files = sorted(directory.glob("*.safetensors"))
    assert len(files) == spec.shards
    assert all(load_file(file) for file in files), "a shard is empty"
    model, report = transformers.Qwen2ForCausalLM.from_pretrained(directory, output_loading_info=True)
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    theirs = model.state_dict()
    assert all(torch.equal(theirs[name], ours[name]) for name in ours)
    assert set(theirs) - set(ours) == ({"lm_head.weight"} if spec.tied else set())


def test_shards_are_about_equal(tmp_path):
    directory = write_checkpoint(tmp_path / "model", replace(SyntheticSpec(), shards=3))
    sizes = [file.stat().st_size for file in directory.glob("*.safetensors")]
    assert max(sizes) < 1.3 * min(sizes)


def test_transformers_reads_the_tokenizer(tmp_path):
    directory = write_checkpoint(tmp_path / "model", SMALL)
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    assert tokenizer("hé").input_ids == [104, 0xC3, 0xA9]
    assert tokenizer.decode([104, 0xC3, 0xA9]) == "hé"


def test_a_vocabulary_too_small_for_bytes_gets_no_tokenizer(tmp_path):
    assert (write_checkpoint(tmp_path / "a", replace(SMALL, vocab=256)) / "tokenizer.json").exists()
    assert not (write_checkpoint(tmp_path / "b", replace(SMALL, vocab=255)) / "tokenizer.json").exists()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("layers, tied", [(1, False), (80, False), (80, True)])
def test_logits_keep_their_scale_at_any_depth(tmp_path, dtype, layers, tied):
    spec = SyntheticSpec(layers=layers, hidden=32, heads=2, kv_heads=1, intermediate=64, dtype=dtype, tied=tied)
    with Checkpoint.open(write_checkpoint(tmp_path / "model", spec)) as checkpoint:
        model = ReferenceModel(checkpoint, capacity=32)
    tokens = torch.arange(0, 256, 8).unsqueeze(0)
    logits = model.forward(tokens, positions=32).float()
    assert 1.5 < logits.std() < 3.0
    assert logits.argmax(-1).unique().numel() > 8, "different tokens are told apart"


@pytest.mark.parametrize(
    "change, message",
    [
        ({"dtype": "float64"}, "dtype must be one of float32, float16, bfloat16, but is 'float64'"),
        ({"layers": 0}, "num_hidden_layers must be greater than 0"),
        ({"hidden": 17}, "17 is no multiple of 2"),
        ({"heads": 0}, "hidden must be a multiple of heads"),
        ({"heads": 2, "kv_heads": 4}, "2 is no multiple of 4"),
        ({"shards": 0}, "shards must be 1 to 27, the number of tensors, but is 0"),
        ({"shards": 28}, "shards must be 1 to 27"),
        ({"seed": -1}, "seed must be at least 0, but is -1"),
    ],
)
def test_a_spec_that_cannot_be_is_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        replace(SMALL, **change)


def test_an_earlier_synthetic_checkpoint_is_replaced_whole(tmp_path):
    directory = write_checkpoint(tmp_path / "model", replace(SMALL, shards=3))
    write_checkpoint(directory, replace(SMALL, seed=1))
    assert contents(directory) == contents(write_checkpoint(tmp_path / "fresh", replace(SMALL, seed=1)))
    write_checkpoint(directory, replace(SMALL, shards=2))
    assert contents(directory) == contents(write_checkpoint(tmp_path / "again", replace(SMALL, shards=2)))
    assert json.loads((directory / "synthetic.json").read_text()) == asdict(replace(SMALL, shards=2))


def test_an_empty_directory_is_filled(tmp_path):
    (tmp_path / "model").mkdir()
    assert Checkpoint.open(write_checkpoint(tmp_path / "model", SMALL)).names()


def test_a_directory_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(CheckpointError, match=r"no synthetic checkpoint \(notes\.txt\)"):
        write_checkpoint(tmp_path, SMALL)
    assert contents(tmp_path) == {"notes.txt": b"mine"}


def test_a_real_checkpoint_is_left_alone(tmp_path):
    directory = write_checkpoint(tmp_path / "model", SMALL)
    (directory / "synthetic.json").unlink()
    before = contents(directory)
    with pytest.raises(CheckpointError, match="choose another directory, or force"):
        write_checkpoint(directory, replace(SMALL, seed=1))
    assert contents(directory) == before


def test_force_replaces_the_model_and_nothing_else(tmp_path):
    directory = write_checkpoint(tmp_path / "model", replace(SMALL, shards=2))
    (directory / "synthetic.json").unlink()
    (directory / "notes.txt").write_text("mine")
    write_checkpoint(directory, SMALL, force=True)
    fresh = contents(write_checkpoint(tmp_path / "fresh", SMALL))
    assert contents(directory) == fresh | {"notes.txt": b"mine"}


@pytest.mark.parametrize("earlier", [False, True])
def test_a_write_that_fails_leaves_nothing_half_done(tmp_path, monkeypatch, earlier):
    directory = tmp_path / "model"
    before = contents(write_checkpoint(directory, SMALL)) if earlier else None

    def fail(*args, **keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("xinfer_lab.qwen2.synthetic.save_file", fail)
    with pytest.raises(CheckpointError, match=r"cannot be written .*No space left"):
        write_checkpoint(directory, replace(SMALL, seed=1))
    assert [item.name for item in tmp_path.iterdir()] == (["model"] if earlier else [])
    if earlier:
        assert contents(directory) == before


def test_a_replacement_cut_short_is_no_checkpoint(tmp_path, monkeypatch):
    directory = write_checkpoint(tmp_path / "model", SMALL)
    real = os.replace

    def fail_at_the_tokenizer(source, target):
        if os.fspath(target).endswith("tokenizer.json"):
            raise OSError(5, "Input/output error")
        real(source, target)

    monkeypatch.setattr("xinfer_lab.qwen2.synthetic.os.replace", fail_at_the_tokenizer)
    with pytest.raises(CheckpointError, match="cannot be written"):
        write_checkpoint(directory, replace(SMALL, seed=1))
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        Checkpoint.open(directory)


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "model").write_text("mine")
    with pytest.raises(CheckpointError, match="a directory was wanted"):
        write_checkpoint(tmp_path / "model", SMALL)


def test_a_disk_that_is_full_leaves_nothing_and_is_named(tmp_path, monkeypatch):
    def full(*_, **__):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("xinfer_lab.qwen2.synthetic.save_file", full)
    with pytest.raises(CheckpointError, match=r"model\.safetensors: cannot be written \(.*No space left"):
        write_checkpoint(tmp_path / "model", SyntheticSpec())
    assert list(tmp_path.iterdir()) == []
