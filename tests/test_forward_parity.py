"""Streaming changes where weights live, never the result: streamed logits equal resident logits byte for byte."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.models import PROMPT, Models, assert_clean, assert_equal, tiny, uploads
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import OutOfDeviceMemory
from xinfer_lab.device.records import Copy
from xinfer_lab.qwen2 import Checkpoint, ReferenceModel, SyntheticSpec, greedy
from xinfer_lab.residency.generate import generate
from xinfer_lab.residency.model import QwenModel, effective_pool
from xinfer_lab.residency.parity import compare_logits, greedy_run, parity_line, run_fixed

SCHEDULES = ("timed", "copies_first", "copies_last", "random(1)", "random(2)")
LAYERS = (6, 7, 24, 28)


def test_streaming_matches_resident(models: Models, capsys: pytest.CaptureFixture[str]) -> None:
    """The acceptance test: six layers, two slots, several decode steps, in memory that the resident model exceeds."""
    spec, steps, pool = SyntheticSpec(layers=6), 6, 2
    prompt = torch.tensor([[72, 101, 108, 108, 111]])
    resident = models.resident(spec, prompt, steps, context=16)

    budget = models.streamed(spec, pool, EmulatedDevice(), resident.tokens, context=16).memory.peak
    with EmulatedDevice(memory=budget) as device, pytest.raises(OutOfDeviceMemory):
        QwenModel.load(models.path(spec), device, context=16)

    with EmulatedDevice(memory=budget) as device:
        streamed = greedy_run(
            lambda device: QwenModel.load_streaming(models.path(spec), device, pool, context=16), device, prompt, steps
        )
        assert device.memory.use().used <= resident.memory.peak // 2

    equal, difference = compare_logits(resident.logits, streamed.logits)
    print(parity_line(difference))
    assert equal
    assert [tokens.tolist() for tokens in streamed.tokens] == [tokens.tolist() for tokens in resident.tokens]
    assert_clean(streamed)
    assert streamed.uploads == steps * spec.layers
    assert streamed.memory.peak <= budget < resident.memory.peak
    assert capsys.readouterr().out == "streaming vs resident max abs diff = 0\n"


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_resident_model_is_the_plain_layer_maths(models: Models, dtype: str) -> None:
    """What streaming is compared with is itself equal to plain tensors and functions in order."""
    spec = tiny(6, dtype=dtype)
    run = models.resident(spec)
    with Checkpoint.open(models.path(spec)) as checkpoint:
        reference = ReferenceModel(checkpoint, capacity=64)
        assert_equal([reference.forward(tokens) for tokens in run.tokens], run)


@pytest.mark.parametrize("pool", [1, 2, 3, 5, "L", "L+1"])
@pytest.mark.parametrize("layers", LAYERS)
def test_any_layers_any_pool_any_tokens(models: Models, layers: int, pool: int | str) -> None:
    pool = {"L": layers, "L+1": layers + 1}.get(pool, pool)
    spec = tiny(layers)
    resident = models.resident(spec, passes=5)
    with EmulatedDevice(schedule="random(3)") as device:
        streamed = models.streamed(spec, pool, device, resident.tokens)
        done = uploads(device.stream.records)
    assert_equal(resident, streamed)
    assert_clean(streamed)
    slots = effective_pool(pool, layers)
    if slots is None:
        assert pool >= layers and done == []
        return
    assert slots == max(2, pool)
    # Each (step, layer) once, in order, to the slot that its running number says.
    assert done == [(step % layers, f"slot[{step % slots}]") for step in range(5 * layers)]
    assert streamed.uploads == 5 * layers


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_any_dtype_under_any_schedule(models: Models, dtype: str, schedule: str) -> None:
    spec = tiny(7, dtype=dtype)
    resident = models.resident(spec)
    with EmulatedDevice(schedule=schedule) as device:
        streamed = models.streamed(spec, 3, device, resident.tokens)
    assert_equal(resident, streamed)
    assert_clean(streamed)


@pytest.mark.parametrize("host_memory", ["pinned", "staged"])
@pytest.mark.parametrize("schedule", SCHEDULES[:4])
def test_any_host_memory(models: Models, host_memory: str, schedule: str) -> None:
    spec = tiny(7)
    resident = models.resident(spec)
    with EmulatedDevice(schedule=schedule) as device:
        streamed = models.streamed(spec, 3, device, resident.tokens, host_memory=host_memory)
    assert_equal(resident, streamed)
    assert_clean(streamed)


@pytest.mark.parametrize("host_memory", ["pinned", "staged"])
@pytest.mark.parametrize("schedule", SCHEDULES[:4])
def test_serial_matches_resident(models: Models, host_memory: str, schedule: str) -> None:
    spec = tiny(7)
    resident = models.resident(spec)
    with EmulatedDevice(schedule=schedule) as device:
        serial = run_fixed(
            lambda device: QwenModel.load_serial(models.path(spec), device, host_memory=host_memory),
            device,
            resident.tokens,
        )
        assert uploads(device.stream.records) == [(step % 7, "slot[0]") for step in range(5 * 7)]
    assert_equal(resident, serial)
    assert_clean(serial)


@pytest.mark.parametrize("shape", [{"batch": 3}, {"batch": 2, "positions": None}, {"context": 9, "chunk": 5}])
def test_batches_and_all_positions(models: Models, shape: dict[str, int | None]) -> None:
    spec = tiny(6)
    prompt = PROMPT if "batch" not in shape else torch.arange(5 * (shape["batch"] or 1)).view(-1, 5)
    resident = models.resident(spec, prompt, **shape)
    with EmulatedDevice() as device:
        streamed = models.streamed(spec, 2, device, resident.tokens, **shape)
    assert resident.logits[0].shape == (prompt.shape[0], 5 if "positions" in shape else 1, 64)
    assert_equal(resident, streamed)
    assert_clean(streamed)


def test_sequences_of_a_batch_do_not_mix(models: Models) -> None:
    spec = tiny(6)
    prompt = torch.tensor([[1, 2, 3], [9, 8, 7]])
    both = models.resident(spec, prompt, 1, batch=2, positions=None)
    for row in range(2):
        alone = models.resident(spec, prompt[row : row + 1], 1, positions=None)
        torch.testing.assert_close(both.logits[0][row : row + 1], alone.logits[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("shards", [1, 4])
def test_tied_and_sharded_checkpoints(models: Models, tied: bool, shards: int) -> None:
    spec = tiny(6, tied=tied, shards=shards)
    resident = models.resident(spec)
    with EmulatedDevice() as device:
        streamed = models.streamed(spec, 3, device, resident.tokens)
    assert_equal(resident, streamed)
    assert_clean(streamed)


@pytest.mark.parametrize("chunk", [1, 2, 3, 4])
def test_a_chunked_prefill_is_equal_in_both_residencies(models: Models, chunk: int) -> None:
    spec = tiny(7)
    results = []
    for pool in (None, 3):
        with EmulatedDevice(schedule="random(5)") as device:
            path = models.path(spec)
            model = (
                QwenModel.load(path, device, chunk=chunk, context=16)
                if pool is None
                else QwenModel.load_streaming(path, device, pool, chunk=chunk, context=16)
            )
            seen: list[torch.Tensor] = []

            def choose(logits: torch.Tensor, seen: list[torch.Tensor] = seen) -> torch.Tensor:
                seen.append(logits.clone())
                return greedy(logits)

            tokens = [ids.tolist() for ids in generate(model, PROMPT, 4, choose)]
            passes = -(-PROMPT.shape[1] // chunk) + 3
            assert model.source.uploads == (0 if pool is None else passes * spec.layers)
            model.close()
            device.raise_hazards()
            results.append((tokens, seen))
    assert results[0][0] == results[1][0]
    assert_equal(results[0][1], results[1][1])


def test_runs_after_one_another_continue_or_begin_anew(models: Models) -> None:
    spec = tiny(7)
    runs = []
    for pool in (None, 2, 3, 5):
        with EmulatedDevice() as device:
            path = models.path(spec)
            model = QwenModel.load(path, device) if pool is None else QwenModel.load_streaming(path, device, pool)
            logits = [model.forward(PROMPT), model.forward(PROMPT[:, :1])]  # nothing announced: a run for each pass
            model.begin(3)  # announced, and one pass fewer run
            logits += [model.forward(PROMPT[:, 1:2]), model.forward(PROMPT[:, 2:3])]
            model.reset()
            model.begin(2)
            logits += [model.forward(PROMPT), model.forward(PROMPT[:, 3:4])]
            extra = 0 if pool is None else model.source.uploads - 6 * spec.layers
            assert 0 <= extra <= (pool or 0)
            model.close()
            device.raise_hazards()
            runs.append(logits)
    assert_equal(runs[0][:1], runs[0][4:5])
    for logits in runs[1:]:
        assert_equal(runs[0], logits)


@pytest.mark.parametrize("pool", [2, 3, 5])
def test_a_run_that_stops_early_leaves_at_most_a_pool_of_uploads(models: Models, pool: int) -> None:
    spec, wanted = tiny(7), 2
    with EmulatedDevice() as device, QwenModel.load_streaming(models.path(spec), device, pool) as model:
        for count, _ in enumerate(generate(model, PROMPT, 10, lambda logits: logits.argmax(-1)), 1):
            if count == wanted + 1:
                break
        # The prompt's pass and `wanted` more were run; uploads went ahead by the pool, and each was needed but those.
        needed = (wanted + 1) * spec.layers
        assert model.source.uploads == needed + pool
        done = uploads(device.stream.records)
        assert done == [(step % 7, f"slot[{step % pool}]") for step in range(needed + pool)]
        device.raise_hazards()


def test_end_tokens_stop_generation(models: Models) -> None:
    spec = tiny(7)
    with EmulatedDevice() as device, QwenModel.load_streaming(models.path(spec), device, 2) as model:
        first = [int(ids) for ids in generate(model, PROMPT, 6, greedy)]
        end = first[2]
        object.__setattr__(model.config, "eos_token_ids", (end,))
        model.reset()
        stopped = [int(ids) for ids in generate(model, PROMPT, 6, greedy)]
        assert stopped == first[: first.index(end) + 1]
        model.reset()
        assert [int(ids) for ids in generate(model, PROMPT, 6, greedy, stop_at_eos=False)] == first
        device.raise_hazards()


def test_a_window_is_honoured_in_every_residency(models: Models, tmp_path) -> None:
    import json
    import shutil

    path = shutil.copytree(models.path(tiny(6)), tmp_path / "windowed")
    config = json.loads((path / "config.json").read_text())
    config |= {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 2}
    config.pop("layer_types", None)
    (path / "config.json").write_text(json.dumps(config))
    runs = []
    for pool in (None, 2):
        with EmulatedDevice() as device:
            opener = (
                (lambda device: QwenModel.load(path, device))
                if pool is None
                else (lambda device: QwenModel.load_streaming(path, device, 2))
            )
            runs.append(greedy_run(opener, device, PROMPT, 4))
            assert_clean(runs[-1])
    assert_equal(*runs)
    whole = models.resident(tiny(6))
    assert not torch.equal(whole.logits[0], runs[0].logits[0])


def test_two_copies_a_layer_not_one_for_each_tensor(models: Models) -> None:
    """Tiny copies one by one would cost more than they move: a layer crosses as two."""
    spec = tiny(6)
    with EmulatedDevice() as device:
        run = models.streamed(spec, 2, device, models.resident(spec).tokens)
        copies = [record for record in device.stream if isinstance(record, Copy) and record.queue == "copy"]
        running = [record for record in copies if record.label.startswith("upload layer")]
    assert len(running) == 2 * run.uploads


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    layers=st.integers(3, 9),
    pool=st.integers(1, 10),
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    announced=st.integers(0, 3),
    host_memory=st.sampled_from(["pinned", "staged"]),
    seed=st.integers(0, 2**16),
)
def test_whatever_is_asked_the_bytes_are_equal(
    models: Models, layers: int, pool: int, lengths: list[int], announced: int, host_memory: str, seed: int
) -> None:
    spec = tiny(layers)
    feed = [torch.randint(64, (1, length), generator=torch.Generator().manual_seed(seed)) for length in lengths]
    results = []
    for streaming in (False, True):
        with EmulatedDevice(schedule=f"random({seed})") as device:
            path = models.path(spec)
            model = (
                QwenModel.load_streaming(path, device, pool, host_memory=host_memory)
                if streaming
                else QwenModel.load(path, device)
            )
            logits = []
            for tokens in feed:
                if announced and model.steps_left == 0:
                    model.begin(announced)
                logits.append(model.forward(tokens))
            if model.source.uploads:
                assert len(feed) * layers <= model.source.uploads <= len(feed) * layers + pool + 1
            model.close()
            device.raise_hazards()
            results.append(logits)
    assert_equal(*results)


@pytest.mark.parametrize("different", ["value", "sign of zero", "nan", "missing pass", "shape"])
def test_the_parity_check_sees_every_difference(different: str) -> None:
    ours = [torch.tensor([[[1.0, 0.0, -2.0]]])]
    theirs = [ours[0].clone()]
    assert compare_logits(ours, theirs) == (True, 0.0)
    match different:
        case "value":
            theirs[0][0, 0, 2] = torch.nextafter(torch.tensor(-2.0), torch.tensor(0.0))
        case "sign of zero":
            theirs[0][0, 0, 1] = -0.0
        case "nan":
            ours[0][0, 0, 1] = theirs[0][0, 0, 1] = float("nan")
        case "missing pass":
            theirs = []
        case "shape":
            theirs[0] = theirs[0][:, :, :2]
    equal, largest = compare_logits(ours, theirs)
    assert not equal
    assert parity_line(largest) != "streaming vs resident max abs diff = 0"
