"""Memory, of the device and of the host: what a model holds, and that it gives back what it took, whatever happens."""

import gc
import weakref
from pathlib import Path

import pytest
import torch

from tests.models import PROMPT, Models, assert_equal, tiny
from tests.sample import sampled
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import OutOfDeviceMemory, StreamError
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.device.memory import WORKSPACE
from xinfer_lab.device.records import Allocate, Copy, Free, HostWrite
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.qwen2 import Checkpoint, SyntheticSpec, filemap, layer_layout, resident_tensors
from xinfer_lab.residency import load
from xinfer_lab.residency.errors import LayerOrderError, RequestError
from xinfer_lab.residency.host import PinnedLayers, StagedLayers
from xinfer_lab.residency.model import QwenModel, effective_pool
from xinfer_lab.residency.source import LayerOrder
from xinfer_lab.residency.streaming import StreamingLayers
from xinfer_lab.residency.weights import CheckpointWeights, SizedWeights

LAYERS = 6
LOADS = {
    "resident": lambda path, device: QwenModel.load(path, device),
    "streaming": lambda path, device: QwenModel.load_streaming(path, device, 3),
    "staged": lambda path, device: QwenModel.load_streaming(path, device, 3, host_memory="staged"),
    "serial": lambda path, device: QwenModel.load_serial(path, device),
}


def living(device: EmulatedDevice) -> dict[str, str]:
    """The heap of each living buffer, by the stream alone."""
    heaps: dict[str, str] = {}
    for record in device.stream:
        if isinstance(record, Allocate):
            heaps[record.buffer] = record.heap
        elif isinstance(record, Free):
            del heaps[record.buffer]
    return heaps


def host_bytes(device: EmulatedDevice) -> tuple[int, int]:
    """Bytes of pinned host memory: the most that were there at once, and what is there now."""
    sizes: dict[str, int] = {}
    peak = 0
    for record in device.stream:
        if isinstance(record, Allocate) and record.heap != "default":
            sizes[record.buffer] = record.size
        elif isinstance(record, Free):
            sizes.pop(record.buffer, None)
        peak = max(peak, sum(sizes.values()))
    return peak, sum(sizes.values())


def forget(device: EmulatedDevice) -> None:
    """Nothing is left of any model."""
    assert living(device) == {}
    assert set(device.memory.use().holders) <= {WORKSPACE}
    device.raise_hazards()


# Device memory


@pytest.mark.parametrize("kind", LOADS)
def test_a_model_holds_what_its_shapes_say(models: Models, kind: str) -> None:
    spec = tiny(LAYERS, tied=True)
    config, context, batch = spec.config(), 32, 2
    with EmulatedDevice() as device:
        opener = {"resident": QwenModel.load, "serial": QwenModel.load_serial}.get(
            kind, lambda path, device, **shape: QwenModel.load_streaming(path, device, 3, **shape)
        )
        with opener(models.path(spec), device, context=context, batch=batch, chunk=8, positions=None):
            layers = {"resident": LAYERS, "serial": 1}.get(kind, 3)
            kv = 2 * config.num_key_value_heads * config.head_dim * 4 * context * batch * LAYERS
            activations = batch * 8 * (8 + config.hidden_size * 4 + config.vocab_size * 4)
            wanted = layers * layer_layout(config).nbytes + resident_tensors(config).nbytes + kv + activations
            assert device.memory.use().used == wanted
        forget(device)


@pytest.mark.parametrize("tied", [True, False])
def test_tied_embeddings_are_held_once_by_name_and_config(models: Models, tied: bool) -> None:
    """On a device without bytes too: no address says what is tied."""
    config = tiny(LAYERS, tied=tied).config()
    table = config.vocab_size * config.hidden_size * 4
    device = SimulatedDevice(GPU_SPECS["laptop"])

    def make(device, weights):
        layout = layer_layout(config)
        return StreamingLayers(device, layout, config.dtype, PinnedLayers(device, layout, LAYERS), LAYERS, 2)

    model = QwenModel(SizedWeights(config), device, make)
    assert device.memory.use().holders["resident"] == (1 if tied else 2) * table + 256
    outside = model._outside
    assert (outside.head != outside.embedding) == (not tied)
    views = list(dict.fromkeys((outside.embedding, outside.norm, outside.head)))
    assert len({view.offset for view in views}) == len(views)
    model.forward(PROMPT)
    written = {record.source.name for record in device.stream if isinstance(record, HostWrite)}
    assert ("lm_head.weight" in written) == (not tied)
    model.close()


def test_an_untied_head_with_the_bytes_of_the_embedding_stays_its_own(models: Models, tmp_path: Path) -> None:
    import shutil

    from safetensors.torch import load_file, save_file

    path = Path(shutil.copytree(models.path(tiny(LAYERS)), tmp_path / "equal"))
    tensors = load_file(path / "model.safetensors")
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    save_file(tensors, path / "model.safetensors")
    with EmulatedDevice() as device, QwenModel.load_streaming(path, device, 2) as model:
        assert model._outside.head != model._outside.embedding
        model.forward(PROMPT)
        device.raise_hazards()


@pytest.mark.parametrize("pool", [2, 3, 5])
def test_bytes_moved_a_step_are_the_streamed_layers_weights(models: Models, pool: int) -> None:
    """No cache and no activation travels: only weights, tokens in, logits out."""
    spec = tiny(LAYERS)
    config, layout = spec.config(), layer_layout(spec.config())
    with EmulatedDevice() as device, QwenModel.load_streaming(models.path(spec), device, pool) as model:
        model.begin(3)
        for _ in range(2):
            model.forward(PROMPT[:, :1])
        first = len(device.stream)
        model.forward(PROMPT[:, :1])
        step = [record for record in device.stream.records[first:] if isinstance(record, Copy)]
        to_device = [r for r in step if device.heap_of(r.src.buffer) == "upload" and r.queue == "copy"]
        others = {r.label: r.dst.size for r in step if r not in to_device}
        # The last pass of a run uploads what was not prefetched by the pass before.
        assert sum(r.dst.size for r in to_device) == (LAYERS - pool) * layout.nbytes
        whole = [r for r in device.stream if isinstance(r, Copy) and r.label.startswith("upload layer")]
        assert sum(r.dst.size for r in whole) == 3 * LAYERS * layout.nbytes
        assert layout.nbytes - layout.weight_nbytes < 12 * 256
        assert others == {"upload tokens": 8, "read logits back": config.vocab_size * 4}


def fits(models: Models, kind: str) -> int:
    """The smallest budget in which a model of this kind loads."""
    with EmulatedDevice() as device:
        model = LOADS[kind](models.path(tiny(LAYERS)), device)
        used = device.memory.use().used
        model.close()
    return used


@pytest.mark.parametrize("kind", LOADS)
def test_a_model_that_does_not_fit_leaves_nothing_behind(models: Models, kind: str) -> None:
    path, needed = models.path(tiny(LAYERS)), fits(models, kind)
    layer = layer_layout(tiny(LAYERS).config()).nbytes
    for budget in (needed - 1, needed - layer // 2, needed - layer, needed // 2, 300):
        device = EmulatedDevice(memory=budget)
        with pytest.raises(OutOfDeviceMemory) as caught:
            LOADS[kind](path, device)
        assert str(budget) in str(caught.value) or "budget" in str(caught.value)
        assert device.memory.use().used == 0
        forget(device)
        device.close()


def test_after_a_failed_load_a_smaller_pool_can_be_loaded_on_the_same_device(models: Models) -> None:
    spec = SyntheticSpec(layers=LAYERS)
    right = models.resident(spec, context=16)
    with EmulatedDevice() as device:
        budget = models.streamed(spec, 2, device, right.tokens, context=16).memory.peak
    with EmulatedDevice(memory=budget) as device:
        for pool in (LAYERS, 5, 3):
            with pytest.raises(OutOfDeviceMemory):
                QwenModel.load_streaming(models.path(spec), device, pool, context=16)
        streamed = models.streamed(spec, 2, device, right.tokens, context=16)
        forget(device)
    assert_equal(right, streamed)


def test_models_of_other_checkpoints_follow_one_another_on_a_device(models: Models) -> None:
    """Names of tensors are the same in all checkpoints: each model reads its own."""
    with EmulatedDevice() as device:
        for seed in (1, 2, 1):
            spec = tiny(LAYERS, seed=seed)
            prompt = PROMPT + seed
            right = models.resident(spec, prompt)
            assert_equal(right, models.streamed(spec, 2, device, right.tokens))
            forget(device)


def test_a_pass_whose_workspace_does_not_fit_can_be_followed_by_a_smaller_one(models: Models) -> None:
    spec = tiny(LAYERS)
    prompt = torch.arange(48).view(1, 48) % 64
    right = models.resident(spec, prompt[:, :1], 2)
    with EmulatedDevice() as probe:
        budget = models.streamed(spec, 2, probe, right.tokens).memory.peak
    with EmulatedDevice(memory=budget) as device, QwenModel.load_streaming(models.path(spec), device, 2) as model:
        with pytest.raises(OutOfDeviceMemory, match="kernel workspace"):
            model.forward(prompt)
        assert_equal(right.logits, [model.forward(tokens) for tokens in right.tokens])
        device.raise_hazards()


# Host memory


def test_pinned_bytes_equal_planned_bytes(models: Models) -> None:
    config = tiny(LAYERS).config()
    with EmulatedDevice() as device, QwenModel.load_streaming(models.path(tiny(LAYERS)), device, 2, chunk=8):
        heaps = {r.buffer: r.size for r in device.stream if isinstance(r, Allocate) and r.heap != "default"}
        layers = {name: size for name, size in heaps.items() if name.startswith("host.layer")}
        assert layers == {f"host.layer[{i}]": layer_layout(config).nbytes for i in range(LAYERS)}
        # With what a pass hands in and out: tokens and the logits of one position.
        assert host_bytes(device)[1] == sum(layers.values()) + 8 * 8 + config.vocab_size * 4


@pytest.mark.parametrize("kind", LOADS)
def test_no_second_copy_of_the_weights_on_the_host(models: Models, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    chunk = 1024
    monkeypatch.setattr(load, "CHUNK", chunk)
    layout = layer_layout(tiny(LAYERS).config())
    with EmulatedDevice() as device:
        model = LOADS[kind](models.path(tiny(LAYERS)), device)
        peak, now = host_bytes(device)
        for_layers = {"resident": 0, "staged": 2 * layout.nbytes}.get(kind, LAYERS * layout.nbytes)
        in_and_out = model.context * 8 + 64 * 4
        assert now == for_layers + in_and_out
        # While loading, two chunks more.
        assert peak <= max(now, for_layers + in_and_out + 2 * chunk)
        model.close()
        assert host_bytes(device)[1] == 0


@pytest.fixture
def maps(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref]:
    """Weak references to every file map that is made."""
    made: list[weakref.ref] = []
    real = filemap.mmap.mmap

    def recording(*args, **kwargs):
        made.append(weakref.ref(mapped := real(*args, **kwargs)))
        return mapped

    monkeypatch.setattr(filemap.mmap, "mmap", recording)
    return made


def mapped(maps: list[weakref.ref]) -> int:
    gc.collect()
    return sum(reference() is not None for reference in maps)


@pytest.mark.parametrize("kind", sampled(LOADS))
def test_files_are_mapped_while_they_are_read_and_not_longer(
    models: Models, maps: list[weakref.ref], kind: str
) -> None:
    with EmulatedDevice() as device:
        model = LOADS[kind](models.path(tiny(LAYERS, shards=3)), device)
        assert len(maps) == 3 or kind == "staged"
        assert mapped(maps) == 0
        model.forward(PROMPT)
        assert bool(mapped(maps)) == (kind == "staged")
        model.close()
        assert mapped(maps) == 0


def test_files_are_let_go_when_a_load_fails(models: Models, maps: list[weakref.ref]) -> None:
    with EmulatedDevice(memory=fits(models, "streaming") - 1) as device, pytest.raises(OutOfDeviceMemory):
        QwenModel.load_streaming(models.path(tiny(LAYERS)), device, 3)
    assert maps and mapped(maps) == 0


def test_an_open_checkpoint_stays_its_owners(models: Models) -> None:
    with Checkpoint.open(models.path(tiny(LAYERS))) as checkpoint, EmulatedDevice() as device:
        with QwenModel.load_streaming(checkpoint, device, 2, host_memory="staged") as model:
            model.forward(PROMPT)
        assert checkpoint.bytes("model.norm.weight").numel() == 64


def test_progress_is_told_for_each_layer_read(models: Models) -> None:
    for load_kind in (QwenModel.load, QwenModel.load_streaming, QwenModel.load_serial):
        seen: list[int] = []
        with EmulatedDevice() as device:
            load_kind(models.path(tiny(LAYERS)), device, on_layer=seen.append).close()
        assert seen == list(range(LAYERS))


# Closing, and errors in between


@pytest.mark.parametrize("kind", LOADS)
@pytest.mark.parametrize("moment", ["unused", "announced", "in a run", "after a run"])
def test_closing_gives_everything_back_at_any_moment_and_twice(models: Models, kind: str, moment: str) -> None:
    with EmulatedDevice(schedule="copies_last") as device:
        model = LOADS[kind](models.path(tiny(LAYERS)), device)
        if moment != "unused":
            model.begin(2)
        if moment in ("in a run", "after a run"):
            model.forward(PROMPT)
        if moment == "after a run":
            model.forward(PROMPT)
        model.close()
        forget(device)
        model.close()
        model.source.close()
        forget(device)
        with pytest.raises(RequestError, match="closed"):
            model.forward(PROMPT)


@pytest.mark.parametrize("kind", LOADS)
@pytest.mark.parametrize("layer", [0, 2, LAYERS - 1])
def test_an_error_in_a_pass_leaves_the_sequence_as_it_was(models: Models, kind: str, layer: int) -> None:
    spec = tiny(LAYERS)
    right = models.resident(spec)
    with EmulatedDevice(schedule="copies_last") as device, LOADS[kind](models.path(spec), device) as model:

        def stop(at: int, hidden: torch.Tensor) -> None:
            if at == layer:
                raise KeyboardInterrupt

        logits = []
        model.begin(4)
        for tokens in right.tokens:
            before = model.position
            with pytest.raises(KeyboardInterrupt):
                model.forward(tokens, on_layer=stop)
            assert model.position == before
            logits.append(model.forward(tokens))
        assert_equal(right, logits)
        if kind != "resident":
            assert model.source.uploads <= (2 * len(right.tokens)) * LAYERS
        model.close()
        forget(device)


@pytest.mark.parametrize("kind", LOADS)
def test_leaving_a_block_by_an_error_closes_the_model(models: Models, kind: str) -> None:
    with EmulatedDevice() as device:
        with pytest.raises(ZeroDivisionError), LOADS[kind](models.path(tiny(LAYERS)), device) as model:
            model.begin(2)
            raise ZeroDivisionError
        forget(device)


def test_a_run_that_could_not_begin_can_begin_later(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    right = models.resident(tiny(LAYERS))
    with EmulatedDevice() as device, QwenModel.load_streaming(models.path(tiny(LAYERS)), device, 2) as model:

        def broken(steps: int) -> None:
            raise KeyboardInterrupt

        model.begin(len(right.tokens))
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(model.source, "begin", broken)
            model.forward(PROMPT)
        assert_equal(right.logits, [model.forward(tokens) for tokens in right.tokens])
        assert model.source.uploads == len(right.tokens) * LAYERS
        device.raise_hazards()


def test_a_source_that_fails_is_told_by_its_own_error(models: Models) -> None:
    with EmulatedDevice() as device, QwenModel.load_streaming(models.path(tiny(LAYERS)), device, 2) as model:
        ensure = model.source.ensure

        def broken(layer: int):
            if layer == 3:
                raise StreamError("out of order")
            return ensure(layer)

        model.source.ensure = broken
        with pytest.raises(StreamError, match="out of order"):
            model.forward(PROMPT)


# Requests and the order of layers


def test_a_pool_is_clamped_and_falls_back() -> None:
    assert [effective_pool(pool, 6) for pool in (1, 2, 3, 5, 6, 7, 100)] == [2, 2, 3, 5, None, None, None]
    assert [effective_pool(pool, 2) for pool in (1, 2, 3)] == [None, None, None]
    assert effective_pool(1, 1) is None
    for pool in (0, -1):
        with pytest.raises(RequestError, match="at least 2 slots"):
            effective_pool(pool, 6)


@pytest.mark.parametrize("kind", LOADS)
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"batch": 0}, "at least 1"),
        ({"context": 0}, "at least 1"),
        ({"chunk": 0}, "at least 1"),
        ({"context": 65}, "made for 64"),
        ({"positions": 0}, "at least 1 position"),
    ],
)
def test_impossible_shapes_are_refused_before_anything_is_allocated(
    models: Models, kind: str, shape: dict[str, int], message: str
) -> None:
    opener = {"resident": QwenModel.load, "serial": QwenModel.load_serial}.get(kind, QwenModel.load_streaming)
    with EmulatedDevice() as device:
        with pytest.raises(RequestError, match=message):
            opener(models.path(tiny(LAYERS)), device, **shape)
        assert not len(device.stream)


def test_an_unknown_kind_of_host_memory_is_refused(models: Models) -> None:
    with EmulatedDevice() as device:
        with pytest.raises(ValueError, match="pinned"):
            QwenModel.load_streaming(models.path(tiny(LAYERS)), device, 2, host_memory="paged")
        forget(device)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (torch.tensor([1, 2]), "shape"),
        (torch.zeros(2, 3, dtype=torch.int64), "shape"),
        (torch.zeros(1, 0, dtype=torch.int64), "shape"),
        (torch.zeros(1, 3, dtype=torch.int32), "int64"),
        (torch.tensor([[64]]), "0 to 63, but 64"),
        (torch.tensor([[5, -1]]), "0 to 63, but -1"),
        (torch.zeros(1, 9, dtype=torch.int64), "up to 8"),
    ],
)
def test_tokens_that_do_not_fit_are_refused_and_change_nothing(
    models: Models, tokens: torch.Tensor, message: str
) -> None:
    right = models.resident(tiny(LAYERS), context=12, chunk=8)
    path = models.path(tiny(LAYERS))
    with EmulatedDevice() as device, QwenModel.load_streaming(path, device, 2, context=12, chunk=8) as model:
        before = len(device.stream)
        with pytest.raises(RequestError, match=message):
            model.forward(tokens)
        assert len(device.stream) == before
        assert_equal(right.logits[:1], [model.forward(PROMPT)])
        model.forward(PROMPT)
        with pytest.raises(RequestError, match="room for 12 tokens: 10 are there and 5 are to come"):
            model.forward(PROMPT)


SOURCES = {
    "streaming": lambda device, weights: StreamingLayers(
        device, layer_layout(weights.config), weights.config.dtype,
        PinnedLayers(device, layer_layout(weights.config), LAYERS), LAYERS, 2,
    ),
    "staged": lambda device, weights: StreamingLayers(
        device, layer_layout(weights.config), weights.config.dtype,
        StagedLayers(device, layer_layout(weights.config)), LAYERS, 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", [*SOURCES, "resident", "serial"])
def test_layers_are_asked_for_in_order(models: Models, kind: str) -> None:
    with EmulatedDevice() as device, Checkpoint.open(models.path(tiny(LAYERS))) as checkpoint:
        if kind in SOURCES:
            model = QwenModel(CheckpointWeights(checkpoint), device, SOURCES[kind])
        else:
            model = LOADS[kind](checkpoint, device)
        source = model.source
        with pytest.raises(LayerOrderError, match=r"begin\(steps\) first"):
            source.ensure(0)
        with pytest.raises(ValueError, match="at least one step"):
            source.begin(0)
        source.begin(1)
        with pytest.raises(LayerOrderError, match="layer 0 is next"):
            source.ensure(1)
        with pytest.raises(LayerOrderError, match="not the one in use"):
            source.release(0)
        assert source.ensure(0).layer == 0
        with pytest.raises(LayerOrderError, match="layer 0 is still in use"):
            source.ensure(1)
        with pytest.raises(LayerOrderError, match="layer 0 is still in use"):
            source.ensure(0)
        with pytest.raises(LayerOrderError, match="not the one in use"):
            source.release(1)
        with pytest.raises(LayerOrderError, match="middle of a pass"):
            source.begin(1)
        source.release(0)
        with pytest.raises(LayerOrderError, match="middle of a pass: layer 1 is next"):
            source.begin(1)
        for layer in range(1, LAYERS):
            source.ensure(layer)
            source.release(layer)
        with pytest.raises(LayerOrderError, match=r"begin\(steps\) first"):
            source.ensure(0)
        model.close()
        device.raise_hazards()


def test_a_new_run_drops_what_was_announced_and_not_run() -> None:
    order = LayerOrder(3)
    order.begin(5)
    for layer in range(3):
        assert order.ensure(layer) == order.release(layer) == layer
    order.begin(1)
    assert (order.step, order.end) == (3, 6)


def test_a_pool_without_slots_is_refused(models: Models) -> None:
    config = tiny(LAYERS).config()
    device = SimulatedDevice(GPU_SPECS["laptop"])
    device.sources.mount(SizedWeights(config))
    with pytest.raises(ValueError, match="at least 1 slot"):
        StreamingLayers(device, layer_layout(config), config.dtype, PinnedLayers(device, layer_layout(config), 2), 2, 0)
