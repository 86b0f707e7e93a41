"""Opening a checkpoint: one error a fault, views of the file, nothing mapped afterwards."""

import gc
import json
import mmap
import shutil
import sys
import weakref
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from xinfer_lab.qwen2.checkpoint import Checkpoint, expected_shapes
from xinfer_lab.qwen2.errors import CheckpointError, ConfigError, ModelFileError
from xinfer_lab.qwen2.synthetic import SyntheticSpec, write_checkpoint

SMALL = SyntheticSpec(layers=2, hidden=16, heads=2, kv_heads=1, intermediate=24, vocab=32)
SHARDED = SyntheticSpec(layers=2, hidden=16, heads=2, kv_heads=1, intermediate=24, vocab=32, shards=3, dtype="bfloat16")
HEAD = "lm_head.weight"
BIAS = "model.layers.1.self_attn.k_proj.bias"


@pytest.fixture
def single(tmp_path):
    return write_checkpoint(tmp_path / "single", SMALL)


@pytest.fixture
def sharded(tmp_path):
    return write_checkpoint(tmp_path / "sharded", SHARDED)


def rewrite(directory, change):
    """Changes the tensors of a single-file checkpoint."""
    file = directory / "model.safetensors"
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file)


def reindex(directory, change):
    file = directory / "model.safetensors.index.json"
    content = json.loads(file.read_text())
    change(content["weight_map"])
    file.write_text(json.dumps(content))


def reconfigure(directory, **keys):
    file = directory / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | keys))


def test_bytes_and_tensors_are_those_of_the_file(single, sharded):
    for directory in (single, sharded):
        with Checkpoint.open(directory) as checkpoint:
            theirs = {}
            for file in directory.glob("*.safetensors"):
                theirs |= load_file(file)
            assert set(checkpoint.names()) == set(theirs) == set(expected_shapes(checkpoint.config))
            for name, tensor in theirs.items():
                ours = checkpoint.tensor(name)
                assert (ours.dtype, ours.shape) == (checkpoint.config.dtype, tensor.shape)
                assert torch.equal(ours, tensor)
                assert torch.equal(checkpoint.bytes(name), tensor.view(-1).view(torch.uint8))
                entry = checkpoint.entry(name)
                content = entry.file.read_bytes()[entry.offset : entry.offset + entry.nbytes]
                assert content == checkpoint.bytes(name).numpy().tobytes()


def test_a_weights_file_beside_its_config_can_be_given(single):
    with Checkpoint.open(single / "model.safetensors") as one, Checkpoint.open(str(single)) as whole:
        assert one.names() == whole.names()
        assert torch.equal(one.tensor(HEAD), whole.tensor(HEAD))


def test_views_share_the_map_and_copy_nothing(single):
    with Checkpoint.open(single) as checkpoint:
        assert checkpoint.bytes(HEAD).data_ptr() == checkpoint.tensor(HEAD).data_ptr()
        storages = {checkpoint.tensor(name).untyped_storage().data_ptr() for name in checkpoint.names()}
        assert len(storages) == 1


def misalign(directory):
    """Shifts the data by one byte: a header may have any length."""
    file = directory / "model.safetensors"
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    file.write_bytes((length + 1).to_bytes(8, "little") + content[8 : 8 + length] + b" " + content[8 + length :])


def test_a_tensor_at_an_odd_offset_is_copied_and_its_bytes_are_not(single):
    with Checkpoint.open(single) as checkpoint:
        before = {name: checkpoint.tensor(name).clone() for name in checkpoint.names()}
    misalign(single)
    with Checkpoint.open(single) as checkpoint:
        assert checkpoint.entry(HEAD).offset % 4
        for name, tensor in before.items():
            assert torch.equal(checkpoint.tensor(name), tensor)
        assert checkpoint.bytes(HEAD).untyped_storage().nbytes() == (single / "model.safetensors").stat().st_size


def test_files_are_mapped_read_only(single, monkeypatch):
    accesses = []
    real = mmap.mmap

    def spy(*args, **keywords):
        accesses.append(keywords["access"])
        return real(*args, **keywords)

    monkeypatch.setattr("xinfer_lab.qwen2.filemap.mmap.mmap", spy)
    with Checkpoint.open(single) as checkpoint:
        checkpoint.bytes(HEAD)
        checkpoint.bytes(BIAS)
    assert accesses == [mmap.ACCESS_READ]


def test_nothing_stays_mapped_after_close(sharded, monkeypatch):
    maps = []
    real = mmap.mmap

    def spy(*args, **keywords):
        made = real(*args, **keywords)
        maps.append(weakref.ref(made))
        return made

    monkeypatch.setattr("xinfer_lab.qwen2.filemap.mmap.mmap", spy)
    with Checkpoint.open(sharded) as checkpoint:
        total = sum(int(checkpoint.bytes(name).sum()) for name in checkpoint.names())
        assert total > 0
        assert len(maps) == 3 and all(reference() is not None for reference in maps)
    gc.collect()
    assert [reference() for reference in maps] == [None] * 3
    if sys.platform == "linux":
        assert str(sharded) not in Path("/proc/self/maps").read_text()


def test_opening_maps_nothing(sharded, monkeypatch):
    def refuse(*args, **keywords):
        raise AssertionError("opened a map")

    monkeypatch.setattr("xinfer_lab.qwen2.filemap.mmap.mmap", refuse)
    Checkpoint.open(sharded).close()


def test_a_view_outlives_the_checkpoint(single):
    with Checkpoint.open(single) as checkpoint:
        view = checkpoint.tensor(HEAD)
    assert torch.equal(view, load_file(single / "model.safetensors")[HEAD])


def test_a_closed_checkpoint_says_so(single):
    checkpoint = Checkpoint.open(single)
    checkpoint.close()
    checkpoint.close()
    with pytest.raises(ValueError, match="this checkpoint is closed"):
        checkpoint.bytes(HEAD)


def test_the_dtype_is_that_of_the_weights(sharded):
    reconfigure(sharded, torch_dtype="float32")
    assert Checkpoint.open(sharded).config.dtype == torch.bfloat16


def test_an_unknown_name_is_named(single):
    checkpoint = Checkpoint.open(single)
    for read in (checkpoint.entry, checkpoint.bytes, checkpoint.tensor):
        with pytest.raises(CheckpointError, match=r"no tensor model\.layers\.9"):
            read("model.layers.9.mlp.up_proj.weight")


def fails(path, *parts):
    with pytest.raises(CheckpointError) as caught:
        Checkpoint.open(path)
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message, message


def test_no_such_path(tmp_path):
    fails(tmp_path / "nowhere", "nowhere", "no such file or directory")


def test_a_path_that_cannot_be_read_is_named(single, monkeypatch):
    def refuse(self, *args, **keywords):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    fails(single, "cannot be read", "Permission denied")


def test_a_directory_without_config(tmp_path):
    fails(tmp_path, str(tmp_path), "no config.json")


def test_a_file_that_is_no_weights_file(single):
    fails(single / "config.json", "config.json", "a directory or a .safetensors file")


def test_a_directory_without_weights(single):
    (single / "model.safetensors").rename(single / "pytorch_model.bin")
    fails(single, "neither model.safetensors nor model.safetensors.index.json", "pytorch_model.bin is of a format")
    (single / "pytorch_model.bin").unlink()
    fails(single, "neither model.safetensors nor model.safetensors.index.json")


def test_another_model(single):
    reconfigure(single, model_type="llama")
    with pytest.raises(ConfigError, match="'llama'"):
        Checkpoint.open(single)


def test_a_truncated_file(single):
    file = single / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    fails(single, "model.safetensors", "truncated")


def test_a_missing_tensor(single):
    rewrite(single, lambda tensors: tensors.pop(BIAS))
    fails(single, BIAS, "is missing", "2 layers")


def test_a_head_is_missed_unless_the_config_ties_it(single):
    rewrite(single, lambda tensors: tensors.pop(HEAD))
    fails(single, HEAD, "is missing", "untied")
    reconfigure(single, tie_word_embeddings=True)
    assert HEAD not in Checkpoint.open(single).names()


def test_a_tied_model_may_store_its_head_all_the_same(single):
    reconfigure(single, tie_word_embeddings=True)
    rewrite(single, lambda tensors: tensors.update({HEAD: tensors["model.embed_tokens.weight"].clone()}))
    assert Checkpoint.open(single).config.tie_word_embeddings


@pytest.mark.parametrize("value", [1.0, float("nan")])
def test_a_stored_head_of_other_values_is_run_whatever_the_config_says(single, value):
    reconfigure(single, tie_word_embeddings=True)
    rewrite(single, lambda tensors: tensors[HEAD][-1].fill_(value))
    assert not Checkpoint.open(single).config.tie_word_embeddings


def test_a_stored_head_of_another_shape_is_refused(single):
    reconfigure(single, tie_word_embeddings=True)
    rewrite(single, lambda tensors: tensors.update({HEAD: torch.zeros(31, 16)}))
    fails(single, HEAD, "[32, 16]", "[31, 16]")


def test_an_adapter_beside_the_weights_is_not_passed_over(single):
    (single / "adapter_config.json").write_text("{}")
    Checkpoint.open(single).close()
    (single / "adapter_model.safetensors").touch()
    fails(single, "adapter_config.json", "merge it into the model")


@pytest.mark.parametrize(
    "rename, other",
    [
        (lambda name: f"base_model.model.{name}", "base_model.model.model.embed_tokens.weight"),  # unmerged adapters
        (lambda name: f"_orig_mod.{name}", "_orig_mod.model.embed_tokens.weight"),  # torch.compile
        (lambda name: name.removeprefix("model."), "embed_tokens.weight"),  # saved without its head
    ],
)
def test_weights_under_other_names_are_told_by_them(single, rename, other):
    file = single / "model.safetensors"
    save_file({rename(name): tensor for name, tensor in load_file(file).items()}, file)
    fails(single, "model.embed_tokens.weight is missing", f"There is {other}: ")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_pointer_in_the_place_of_a_file_is_told_as_that(single, sharded, name):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 494032768\n"
    for file in (single / name, sharded / "model.safetensors.index.json"):
        file.write_text(pointer)
        with pytest.raises(ModelFileError, match=rf"{file.name}: only a Git LFS pointer .*git lfs pull"):
            Checkpoint.open(file.parent)


def test_layers_that_no_file_has_are_missed_at_once(single):
    reconfigure(single, num_hidden_layers=4096)
    fails(single, "model.layers.2.input_layernorm.weight is missing", "4096 layers")
    reconfigure(single, num_hidden_layers=2**31)
    with pytest.raises(ConfigError, match=r"num_hidden_layers must be at most 4096, but is 2147483648"):
        Checkpoint.open(single)


def test_equal_weights_do_not_make_a_tie(single):
    rewrite(single, lambda tensors: tensors.update({HEAD: tensors["model.embed_tokens.weight"].clone()}))
    assert not Checkpoint.open(single).config.tie_word_embeddings


def test_a_misshaped_tensor(single):
    rewrite(single, lambda tensors: tensors.update({BIAS: torch.zeros(9)}))
    fails(single, "model.safetensors", BIAS, "should have the shape [8]", "has [9]")


def test_a_transposed_tensor_of_equal_size(single):
    name = "model.layers.0.mlp.down_proj.weight"
    rewrite(single, lambda tensors: tensors.update({name: tensors[name].t().contiguous()}))
    fails(single, name, "[16, 24]", "[24, 16]")


def test_mixed_types(single):
    rewrite(single, lambda tensors: tensors.update({BIAS: tensors[BIAS].half()}))
    fails(single, BIAS, "is F16", "is F32", "one type")


@pytest.mark.parametrize("dtype, name", [(torch.float64, "F64"), (torch.int8, "I8")])
def test_types_that_no_weight_has(single, dtype, name):
    rewrite(single, lambda tensors: tensors.update({BIAS: tensors[BIAS].to(dtype)}))
    fails(single, BIAS, name, "F32, F16, BF16")


def test_more_layers_than_the_config_says(single):
    reconfigure(single, num_hidden_layers=1)
    fails(single, "12 tensors are no part", "model.layers.1.", "...")


def test_tensors_of_another_model(single):
    rewrite(single, lambda tensors: tensors.update({"visual.merger.weight": torch.zeros(2)}))
    fails(single, "visual.merger.weight", "another model")


def test_stored_rotary_frequencies_are_harmless(single):
    extra = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.zeros(4, dtype=torch.float64)}
    rewrite(single, lambda tensors: tensors.update(extra))
    with Checkpoint.open(single) as checkpoint, pytest.raises(CheckpointError, match="F64"):
        checkpoint.tensor(*extra)


def test_a_single_file_is_preferred_to_an_index(single):
    (single / "model.safetensors.index.json").write_text("{}")
    assert Checkpoint.open(single).names()


def test_an_absent_shard(sharded):
    (sharded / "model-00002-of-00003.safetensors").unlink()
    fails(sharded, "model-00002-of-00003.safetensors", "no such file", "index.json")


def test_one_shard_is_no_checkpoint(sharded):
    fails(sharded / "model-00002-of-00003.safetensors", "is missing")


def test_a_tensor_that_its_shard_does_not_hold(sharded):
    reindex(sharded, lambda shard_of: shard_of.update({"extra": "model-00001-of-00003.safetensors"}))
    fails(sharded, "model-00001-of-00003.safetensors", "tensor extra is missing", "index.json")


def test_a_tensor_in_another_shard_than_the_index_says(sharded):
    reindex(sharded, lambda shard_of: shard_of.update({HEAD: "model-00003-of-00003.safetensors"}))
    fails(sharded, HEAD, "places it in model-00003-of-00003.safetensors")


def test_a_tensor_that_the_index_does_not_name(sharded):
    reindex(sharded, lambda shard_of: shard_of.pop(HEAD))
    fails(sharded, HEAD, "does not name it")


@pytest.mark.parametrize("shard", ["../model.safetensors", "sub\\x.safetensors", "..", "", 7])
def test_a_shard_is_a_file_beside_the_index(sharded, shard):
    reindex(sharded, lambda shard_of: shard_of.update({HEAD: shard}))
    fails(sharded, HEAD, "beside the index")


@pytest.mark.parametrize(
    "content, part",
    [
        (b"{", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b"{}", "weight_map"),
        (b"[]", "weight_map"),
        (b'{"weight_map": {}}', "weight_map"),
    ],
)
def test_an_index_that_is_none(sharded, content, part):
    (sharded / "model.safetensors.index.json").write_bytes(content)
    fails(sharded, "model.safetensors.index.json", part)


def test_a_checkpoint_is_opened_where_it_was_moved(sharded, tmp_path):
    shutil.move(sharded, tmp_path / "elsewhere")
    assert Checkpoint.open(tmp_path / "elsewhere").names()
