"""Models with experts on a device: the bytes of the plain run, no hazard, and routing that is in the stream."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.models import PROMPT, assert_clean, assert_equal, tiny
from tests.mutants import statements
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import OutOfDeviceMemory, ReplayMismatch
from xinfer_lab.device.records import Dispatch, HostRead
from xinfer_lab.device.replay import replay
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.qwen2 import Checkpoint, ConfigError, ReferenceModel, write_checkpoint
from xinfer_lab.qwen2 import mixture as maths
from xinfer_lab.qwen2.layout import aligned_elements
from xinfer_lab.residency import mixture
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.parity import Run, greedy_run
from xinfer_lab.residency.weights import CheckpointWeights

SPECS = {
    "8 experts": tiny(3, experts=8),
    "one expert a token": tiny(2, experts=5, experts_per_token=1),
    "all experts": tiny(2, experts=3, experts_per_token=3),
    "another seed": tiny(3, experts=8, seed=1),
    "bf16": tiny(2, experts=6, dtype="bfloat16"),
}
every_model = pytest.mark.parametrize("name", SPECS)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("experts")
    return {name: write_checkpoint(directory / str(i), spec) for i, (name, spec) in enumerate(SPECS.items())}


def run(path: Path, prompt: torch.Tensor = PROMPT, passes: int = 4, device: EmulatedDevice | None = None) -> Run:
    batch = prompt.shape[0]
    with device or EmulatedDevice() as made:
        return greedy_run(lambda made: QwenModel.load(path, made, batch=batch, context=16), made, prompt, passes)


def plain(path: Path, feed: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    """Logits of the last position in each pass, without a device."""
    with Checkpoint.open(path) as checkpoint:
        model = ReferenceModel(checkpoint, capacity=16, batch=feed[0].shape[0])
    return [model.forward(tokens) for tokens in feed]


@pytest.mark.parametrize("batch", [1, 3])
@every_model
def test_a_device_gives_the_bytes_of_the_plain_run(paths: dict[str, Path], name: str, batch: int) -> None:
    prompt = torch.randint(64, (batch, 5), generator=torch.Generator().manual_seed(0))
    found = run(paths[name], prompt)
    assert_clean(found)
    assert_equal(plain(paths[name], found.tokens), found)


@pytest.mark.parametrize("schedule", ["copies_first", "copies_last", "random(1)", "random(2)"])
def test_no_schedule_changes_a_byte(paths: dict[str, Path], schedule: str) -> None:
    found = run(paths["8 experts"], device=EmulatedDevice(schedule=schedule))
    assert_clean(found)
    assert_equal(run(paths["8 experts"]), found)


def test_layers_with_and_without_experts_can_follow_one_another(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path / "model", tiny(4, experts=4))
    config = json.loads((path / "config.json").read_text())
    # The same weights and fewer of them: a layer's dense MLP is what was its shared expert.
    from safetensors.torch import load_file, save_file

    tensors = load_file(path / "model.safetensors")
    for layer in (0, 2):
        prefix = f"model.layers.{layer}.mlp."
        shared = {name: tensors.pop(name) for name in list(tensors) if name.startswith(prefix)}
        for part in ("gate_proj", "up_proj", "down_proj"):
            tensors[f"{prefix}{part}.weight"] = shared[f"{prefix}shared_expert.{part}.weight"]
    save_file(tensors, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps(config | {"decoder_sparse_step": 2}))
    found = run(path)
    assert_clean(found)
    assert_equal(plain(path, found.tokens), found)


def test_only_chosen_experts_run_in_the_order_of_their_numbers_each_for_its_rows(paths: dict[str, Path]) -> None:
    device = EmulatedDevice()
    run(paths["8 experts"], PROMPT.repeat(2, 1), device=device)
    called: dict[str, list[tuple[int, int]]] = {}
    order: list[str] = []
    for record in device.stream:
        if isinstance(record, Dispatch) and record.kernel == "route":
            order.append(f"{len(order)}")
            called[order[-1]] = []
        if isinstance(record, Dispatch) and record.kernel == "expert":
            number = int(record.label.rpartition(",")[2])
            called[order[-1]].append((number, record.operands["rows"].shape[0]))
    assert len(order) == 3 * 4
    for index, calls in enumerate(called.values()):
        tokens = 2 * (5 if index < 3 else 1)
        assert [number for number, _ in calls] == sorted({number for number, _ in calls})
        assert sum(count for _, count in calls) == 2 * tokens
    assert len({tuple(number for number, _ in calls) for calls in called.values()}) > 3, "routing depends on the data"


def test_what_tokens_chose_is_in_the_stream_with_its_digest(paths: dict[str, Path]) -> None:
    device = EmulatedDevice()
    run(paths["8 experts"], PROMPT.repeat(2, 1), device=device)
    reads = [r for r in device.stream if isinstance(r, HostRead) and r.src.buffer == "experts.out"]
    assert len(reads) == 3 * 4 and all(read.digest for read in reads)

    def again(path: Path) -> None:
        stream = CommandStream.from_dict(json.loads(json.dumps(device.stream.to_dict())))
        with Checkpoint.open(path) as checkpoint, EmulatedDevice() as other:
            other.sources.mount(CheckpointWeights(checkpoint))
            replay(stream, other)

    again(paths["8 experts"])
    with pytest.raises(ReplayMismatch, match=r"experts\.out"):
        again(paths["another seed"])


def test_a_step_of_one_sequence_with_all_experts_there_needs_no_word_from_the_host(paths: dict[str, Path]) -> None:
    device = EmulatedDevice()
    run(paths["8 experts"], device=device)
    steps = [record for record in device.stream if isinstance(record, Dispatch) and record.kernel == "experts"]
    assert len(steps) == 3 * 3 and len({record.call for record in steps}) == 3 * 3
    reads = [r for r in device.stream if isinstance(r, HostRead) and r.src.buffer == "experts.out"]
    assert len(reads) == 3, "those of the prompt, a layer each"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_all_experts_of_a_row_at_once_are_its_experts_one_by_one(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    size, wide, count, chosen = 20, 28, 5, torch.tensor([0, 2, 3])
    each = aligned_elements(size * wide, dtype.itemsize)
    weights = torch.randn(count, 3 * each, generator=generator).to(dtype)
    normed, mixed = (torch.randn(1, size, generator=generator).to(dtype) for _ in range(2))
    scores = torch.rand(3, generator=generator).to(dtype)
    found, right = mixed.clone(), mixed.clone()
    maths.experts_of_row(normed, chosen, scores, weights, wide, found)
    for place, number in enumerate(chosen.tolist()):
        shapes = ((wide, size), (wide, size), (size, wide))
        tensors = {
            name: weights[number, part * each : part * each + size * wide].view(shape)
            for part, (name, shape) in enumerate(zip(maths.EXPERT_TENSORS, shapes, strict=True))
        }
        maths.expert(normed, torch.tensor([0]), scores[place : place + 1], tensors, right)
    assert torch.equal(found, right)


def test_the_host_waits_for_the_router_and_for_nothing_else_in_a_layer() -> None:
    assert [(s.verb, s.function) for s in statements(mixture)] == [
        ("signal", "run"), ("wait", "run"), ("wait_idle", "close"),
    ]  # fmt: skip


def test_what_knows_no_experts_refuses_a_model_that_has_some(paths: dict[str, Path]) -> None:
    with EmulatedDevice() as device, pytest.raises(ConfigError, match="8 experts in a layer"):
        QwenModel.load_streaming(paths["8 experts"], device, 2)


def test_the_memory_of_all_experts_is_counted(paths: dict[str, Path]) -> None:
    one = run(paths["8 experts"]).memory.peak
    with EmulatedDevice(memory=one - 1) as device, pytest.raises(OutOfDeviceMemory):
        greedy_run(lambda made: QwenModel.load(paths["8 experts"], made, context=16), device, PROMPT, 4)
