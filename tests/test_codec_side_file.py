"""A side file holds a checkpoint's layers in their coded form; or it is refused: damaged, cut short, stale."""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from tests.models import Models, assert_clean, assert_equal, tiny
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.qwen2 import Checkpoint, layer_layout, tensor_name
from xinfer_lab.qwen2.errors import ModelFileError
from xinfer_lab.qwen2.synthetic import write_checkpoint
from xinfer_lab.residency.codec import side_file
from xinfer_lab.residency.codec.decode import decode
from xinfer_lab.residency.codec.encoded import EncodedMemory
from xinfer_lab.residency.codec.format import CODECS, encoded_name
from xinfer_lab.residency.codec.side_file import (
    SideFile,
    SideFileError,
    open_side_file,
    side_file_path,
    write_side_file,
)
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.factories import compressed_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.parity import run_fixed
from xinfer_lab.residency.weights import CheckpointWeights

LAYERS = 3
SPEC = tiny(LAYERS, dtype="bfloat16")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory):
    """One checkpoint, for the tests that leave it as it is."""
    with Checkpoint.open(write_checkpoint(tmp_path_factory.mktemp("side") / "model", SPEC)) as opened:
        yield opened


@pytest.fixture(scope="module")
def good(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A side file that is as it should be."""
    return write_side_file(checkpoint, "3bit", tmp_path_factory.mktemp("good") / "coded.safetensors")


def own(tmp_path: Path, **options) -> Path:
    """The directory of a checkpoint that a test may change."""
    return write_checkpoint(tmp_path / "own", tiny(LAYERS, **{"dtype": "bfloat16", **options}))


def read_all(side: SideFile) -> None:
    for layer in range(len(side.layers)):
        side.bytes(encoded_name(layer))


# What is in it


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("shards", [1, 3])
def test_every_weight_comes_back(tmp_path: Path, codec: str, shards: int) -> None:
    with Checkpoint.open(own(tmp_path, shards=shards)) as checkpoint:
        seen: list[int] = []
        side = open_side_file(checkpoint, codec, on_encode=seen.append)
        assert seen == list(range(LAYERS)) and side.codec == codec
        assert side.path == side_file_path(checkpoint.path, codec)
        names = [place.name for group in layer_layout(checkpoint.config).groups for place in group.tensors]
        for layer, table in enumerate(side.layers):
            data = side.bytes(encoded_name(layer))
            assert data.numel() == table.nbytes == side.nbytes(encoded_name(layer))
            assert [tensor.name for tensor in table.tensors] == names
            for tensor in table.tensors:
                weights = decode(tensor.coding, data[tensor.offset :][: tensor.nbytes].clone())
                assert torch.equal(weights.view(torch.uint8), checkpoint.bytes(tensor_name(layer, tensor.name)))
        assert side.nbytes("encoded.layers.3") is None


def test_it_is_a_safetensors_file_whose_data_begin_at_a_page(good: Path) -> None:
    with safe_open(good, "pt") as opened:
        assert set(opened.keys()) == {encoded_name(layer) for layer in range(LAYERS)}
        assert opened.metadata()["codec"] == "3bit" and opened.metadata()["version"] == "1"
        assert opened.get_tensor(encoded_name(1)).dtype == torch.uint8
    assert (8 + int.from_bytes(good.read_bytes()[:8], "little")) % 4096 == 0


def test_the_bytes_are_those_of_encoding_in_memory(checkpoint: Checkpoint, good: Path) -> None:
    side, memory = SideFile.open(good, checkpoint), EncodedMemory(CheckpointWeights(checkpoint), "3bit")
    assert list(side.layers) == memory.layers
    for layer in range(LAYERS):
        assert torch.equal(side.bytes(encoded_name(layer)), memory.bytes(encoded_name(layer)))


def test_the_same_checkpoint_gives_the_same_file(checkpoint: Checkpoint, good: Path, tmp_path: Path) -> None:
    assert write_side_file(checkpoint, "3bit", tmp_path / "again").read_bytes() == good.read_bytes()


def test_weights_at_odd_bytes_are_encoded_too(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """The header of a safetensors file may have any length."""
    directory = shutil.copytree(checkpoint.path, tmp_path / "odd")
    data = (directory / "model.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little") + 1
    header, rest = length.to_bytes(8, "little") + data[8 : 7 + length] + b" ", data[7 + length :]
    (directory / "model.safetensors").write_bytes(header + rest)
    with Checkpoint.open(directory) as odd:
        assert any(odd.entry(name).offset % 2 for name in odd.names())
        side = open_side_file(odd, "3bit")
        memory = EncodedMemory(CheckpointWeights(checkpoint), "3bit")
        for layer in range(LAYERS):
            assert torch.equal(side.bytes(encoded_name(layer)), memory.bytes(encoded_name(layer)))


@pytest.mark.parametrize("host_memory", ["pinned", "staged"])
def test_a_model_streams_from_it(models: Models, tmp_path: Path, host_memory: str) -> None:
    resident = models.resident(SPEC)
    with Checkpoint.open(models.path(SPEC)) as checkpoint, EmulatedDevice() as device:
        side = open_side_file(checkpoint, "3bit", tmp_path / "coded")
        made = compressed_layers(side, (0, 1, 2), 2, host_memory)
        run = run_fixed(lambda device: QwenModel(CheckpointWeights(checkpoint), device, made), device, resident.tokens)
    assert_equal(resident, run)
    assert_clean(run)


def test_one_that_is_there_is_used_and_not_made_again(checkpoint: Checkpoint, good: Path) -> None:
    before = good.stat().st_mtime_ns
    assert open_side_file(checkpoint, "3bit", good, on_encode=lambda _: pytest.fail("encoded again")).codec == "3bit"
    assert good.stat().st_mtime_ns == before
    with pytest.raises(SideFileError, match="holds 3bit codes, but 4bit ones were asked for"):
        open_side_file(checkpoint, "4bit", good)


def test_a_file_appears_complete_or_not_at_all(checkpoint: Checkpoint, tmp_path: Path) -> None:
    def stop(layer: int) -> None:
        if layer == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_side_file(checkpoint, "3bit", tmp_path / "coded", on_layer=stop)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_one_clear_sentence(checkpoint: Checkpoint, tmp_path: Path) -> None:
    with pytest.raises(SideFileError, match=r"^.*coded: cannot be written \(No such file or directory\)$"):
        write_side_file(checkpoint, "3bit", tmp_path / "nowhere" / "coded")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_other_types_of_weights_are_refused(tmp_path: Path, dtype: str) -> None:
    with Checkpoint.open(own(tmp_path, dtype=dtype)) as checkpoint:
        for attempt in (write_side_file, open_side_file):
            with pytest.raises(RequestError, match=f"for bfloat16 weights, and these are {dtype}"):
                attempt(checkpoint, "3bit")
        with pytest.raises(RequestError, match="a codec is one of 4bit, 3bit, not 'zip'"):
            write_side_file(checkpoint, "zip")
    assert not list((tmp_path / "own").glob("*exponents*"))


# Damage


def refused(file: Path, checkpoint: Checkpoint) -> str:
    """What is said about ``file``, on opening or on reading it: one sentence that names it."""
    with pytest.raises(SideFileError) as caught:
        read_all(SideFile.open(file, checkpoint))
    said = str(caught.value)
    assert isinstance(caught.value, ModelFileError)
    assert said.startswith(f"{file}: ") and "\n" not in said
    return said


def test_reading_it_verifies_each_layer_once(
    checkpoint: Checkpoint, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    side, calls = SideFile.open(good, checkpoint), []
    real = side_file.checksum
    monkeypatch.setattr(side_file, "checksum", lambda data: calls.append(data.numel()) or real(data))
    for _ in range(2):
        side.bytes(encoded_name(1))
    assert calls == [tensor.nbytes for tensor in side.layers[1].tensors]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_no_changed_bit_goes_unnoticed(checkpoint: Checkpoint, good: Path, tmp_path: Path, data: st.DataObject) -> None:
    """In the header or in the data: refused, or it was in padding, and every weight comes back."""
    content = bytearray(good.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    header_end = content.rindex(b"}", 0, start) + 1
    place = data.draw(st.one_of(st.integers(0, header_end), st.integers(start, len(content) - 1)))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    file = tmp_path / "changed"
    file.write_bytes(content)
    try:
        side = SideFile.open(file, checkpoint)
        read_all(side)
    except SideFileError as error:
        assert str(error).startswith(f"{file}: ") and "\n" not in str(error)
        return
    for layer, table in enumerate(side.layers):
        whole = side.bytes(encoded_name(layer))
        for tensor in table.tensors:
            weights = decode(tensor.coding, whole[tensor.offset :][: tensor.nbytes].clone())
            assert torch.equal(weights.view(torch.uint8), checkpoint.bytes(tensor_name(layer, tensor.name)))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_file_that_was_cut_short_is_refused(checkpoint: Checkpoint, good: Path, tmp_path: Path, share: float) -> None:
    content = good.read_bytes()
    (tmp_path / "cut").write_bytes(content[: int(share * len(content))])
    refused(tmp_path / "cut", checkpoint)


def test_a_file_that_is_cut_short_while_it_is_open_is_refused(
    checkpoint: Checkpoint, good: Path, tmp_path: Path
) -> None:
    file = Path(shutil.copy(good, tmp_path / "cut"))
    side = SideFile.open(file, checkpoint)
    file.write_bytes(good.read_bytes()[:-1000])
    with pytest.raises(SideFileError, match="was cut short: layer 2 should end at byte"):
        read_all(side)


def test_other_files_are_refused(checkpoint: Checkpoint, tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "missing", checkpoint)
    (tmp_path / "text").write_text("not a side file at all")
    assert "is no side file that can be used" in refused(tmp_path / "text", checkpoint)
    assert "is no side file of the exponent codec" in refused(checkpoint.path / "model.safetensors", checkpoint)


def rewrite(file: Path, change, *, honest: bool = True) -> None:
    """Change the metadata of a side file; ``honest``: and its digest with them."""
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    change(header["__metadata__"])
    if honest:
        header["__metadata__"]["digest"] = side_file._digest(header["__metadata__"])
    file.write_bytes(content[:8] + json.dumps(header).encode().ljust(length) + content[8 + length :])


def table_change(row: int, column: int, value: object):
    def change(metadata: dict[str, str]) -> None:
        table = json.loads(metadata["table"])
        table[1][row][column] = value
        metadata["table"] = json.dumps(table)

    return change


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (lambda m: m.update(version="2"), "is of version '2', and this package reads version 1"),
        (lambda m: m.update(codec="9bit"), "codec is one of"),
        (lambda m: m.update(codec="4bit"), "has codes of 3 bits, not 4"),
        (lambda m: m.pop("sources"), "is no side file of the exponent codec"),
        (lambda m: m.update(table=json.dumps(json.loads(m["table"])[:2])), "holds 2 layers"),
        (lambda m: m.update(table="[[], [], []]"), "does not fit the model"),
        (table_change(9, 0, "mlp.up_proj.weight"), "stands where mlp.gate_proj.weight"),
        (table_change(9, 3, 5), "stands where mlp.gate_proj.weight"),
        (table_change(9, 1, 0), "before the tensor before it ends"),
        (table_change(9, 1, 100), "before the tensor before it ends"),
        (table_change(9, 2, 10**6), "not what its coding takes"),
        (table_change(9, 5, 300), "base of a coding must be"),
        (table_change(9, 6, -1), "escapes of a coding must be"),
        (table_change(9, 7, "1"), "the row of mlp.gate_proj.weight"),
        (table_change(9, 7, 12345), "the bytes of model.layers.1.mlp.gate_proj.weight have changed"),
        (table_change(11, 1, 2**20), "its tensors are not those of its table"),
    ],
)
def test_metadata_that_do_not_fit_are_refused(
    checkpoint: Checkpoint, good: Path, tmp_path: Path, change, phrase: str
) -> None:
    """Even where their digest is right: another program may have written them."""
    file = Path(shutil.copy(good, tmp_path / "coded"))
    rewrite(file, change)
    with pytest.raises((SideFileError, RequestError)) as caught:
        read_all(SideFile.open(file, checkpoint))
    assert phrase in str(caught.value)


def test_metadata_without_their_digest_are_refused(checkpoint: Checkpoint, good: Path, tmp_path: Path) -> None:
    file = Path(shutil.copy(good, tmp_path / "coded"))
    rewrite(file, table_change(9, 5, 117), honest=False)
    assert "its metadata have changed" in refused(file, checkpoint)


# Age


def touched(directory: Path) -> None:
    file = directory / "model.safetensors"
    now = file.stat().st_mtime_ns
    os.utime(file, ns=(now, now + 10**9))


def test_a_copy_of_the_checkpoint_is_recognised_by_its_weights(tmp_path: Path) -> None:
    directory = own(tmp_path)
    with Checkpoint.open(directory) as checkpoint:
        file = write_side_file(checkpoint, "3bit")
    touched(directory)
    with Checkpoint.open(directory) as checkpoint:
        seen: list[int] = []
        SideFile.open(file, checkpoint, on_layer=seen.append)
        assert seen == list(range(LAYERS))


@pytest.mark.parametrize("seed", [1, 2])
def test_other_weights_of_the_same_sizes_are_refused(tmp_path: Path, seed: int) -> None:
    directory = own(tmp_path)
    with Checkpoint.open(directory) as checkpoint:
        file = write_side_file(checkpoint, "3bit")
    write_checkpoint(directory, tiny(LAYERS, dtype="bfloat16", seed=seed))
    touched(directory)
    with Checkpoint.open(directory) as checkpoint:
        assert "is stale: model.layers.0." in refused(file, checkpoint)


def test_other_files_under_the_same_names_are_refused(tmp_path: Path, good: Path) -> None:
    for options in ({"shards": 2}, {"vocab": 65}):
        with Checkpoint.open(own(tmp_path / str(len(options)) / next(iter(options)), **options)) as other:
            assert "is stale: it was made of other files" in refused(good, other)
    with Checkpoint.open(own(tmp_path, intermediate=32)) as other:
        assert "does not fit the model" in refused(good, other)
    with Checkpoint.open(write_checkpoint(tmp_path / "more", tiny(4, dtype="bfloat16"))) as other:
        assert "holds 3 layers, and" in refused(good, other)
