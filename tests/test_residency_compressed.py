"""Layers that cross the link and wait in their coded form give the bytes of the resident model."""

import itertools

import pytest
import torch

from tests.models import PROMPT, Models, assert_clean, assert_equal, tiny
from tests.mutants import Statement, statements, without
from xinfer_lab.device.checker import check_stream
from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.device.device import Device
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import DeviceError, HazardError, OutOfDeviceMemory
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.device.ordering import Ordering
from xinfer_lab.device.records import Allocate, AssumeCommon, Copy, Dispatch, Free, Wait
from xinfer_lab.device.replay import replay
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.qwen2 import Checkpoint, SyntheticSpec, layer_layout
from xinfer_lab.qwen2.config import PUBLISHED
from xinfer_lab.residency import compressed, streaming, upload
from xinfer_lab.residency.codec.encoded import EncodedMemory, SizedEncoding
from xinfer_lab.residency.codec.format import encoded_name
from xinfer_lab.residency.compressed import CompressedLayers
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.factories import compressed_layers, planned_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.parity import Run, run_fixed
from xinfer_lab.residency.plan import Plan, Shape, make_plan
from xinfer_lab.residency.plan_times import predict
from xinfer_lab.residency.planned import spread
from xinfer_lab.residency.weights import CheckpointWeights, SizedWeights

SCHEDULES = ("timed", "copies_first", "copies_last", "random(1)", "random(2)")
BF16 = {"dtype": "bfloat16"}
LAYERS = 5
SPEC = tiny(LAYERS, **BF16)
STREAMED = {"all": (0, 1, 2, 3, 4), "some": (1, 3, 4), "none": ()}


class Coded:
    """Encoded tiny models, each made once."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self._made: dict[tuple[SyntheticSpec, str], EncodedMemory] = {}

    def weights(self, codec: str, spec: SyntheticSpec = SPEC) -> EncodedMemory:
        if (spec, codec) not in self._made:
            with Checkpoint.open(self._models.path(spec)) as checkpoint:
                self._made[spec, codec] = EncodedMemory(CheckpointWeights(checkpoint), codec)
        return self._made[spec, codec]

    def open(self, device: Device, streamed, codec: str = "3bit", layers: int = LAYERS, pool: int = 2,
             host_memory: str = "pinned", **shape) -> QwenModel:  # fmt: skip
        weights = CheckpointWeights(Checkpoint.open(self._models.path(tiny(layers, **BF16))))
        made = compressed_layers(self.weights(codec, tiny(layers, **BF16)), streamed, pool, host_memory)
        return QwenModel(weights, device, made, **shape)

    def run(self, device: Device, feed, *args, **options) -> Run:
        return run_fixed(lambda device: self.open(device, *args, **options), device, feed)


@pytest.fixture(scope="module")
def coded(models: Models) -> Coded:
    return Coded(models)


def test_most_of_the_tiny_model_is_coded(coded: Coded) -> None:
    """So that these tests see both: tensors that are decoded, and small ones that stay as they are."""
    for codec in ("3bit", "4bit"):
        for layer in coded.weights(codec).layers:
            kinds = {tensor.name: tensor.coding is not None for tensor in layer.tensors}
            assert kinds["mlp.gate_proj.weight"] and kinds["self_attn.q_proj.weight"]
            assert not kinds["self_attn.k_proj.bias"]


# Parity


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("streamed", STREAMED)
@pytest.mark.parametrize("codec", ["3bit", "4bit"])
def test_coded_layers_give_the_bytes_of_the_resident_model(
    models: Models, coded: Coded, codec: str, streamed: str, schedule: str
) -> None:
    resident = models.resident(SPEC)
    with EmulatedDevice(schedule=schedule) as device:
        run = coded.run(device, resident.tokens, STREAMED[streamed], codec)
    assert_equal(resident, run)
    assert_clean(run)
    assert run.uploads == len(resident.tokens) * len(STREAMED[streamed])


@pytest.mark.parametrize(("layers", "pool"), [*itertools.product((3, 4, 7), (1, 2, 3)), (2, 2), (1, 1), (4, 5)])
def test_any_layers_and_any_pool(models: Models, coded: Coded, layers: int, pool: int) -> None:
    resident = models.resident(tiny(layers, **BF16))
    with EmulatedDevice(schedule="random(3)") as device:
        run = coded.run(device, resident.tokens, tuple(range(layers)), layers=layers, pool=pool)
        copies = [(r.label, r.dst.buffer) for r in device.stream if isinstance(r, Copy) and r.queue == "copy"]
    assert_equal(resident, run)
    assert_clean(run)
    # Each (step, layer) once, in order, to the slot that its running number says; and one copy moves a layer.
    wanted = [
        (f"upload layer {step % layers} to slot[{step % pool}]", f"slot[{step % pool}].encoded")
        for step in range(len(resident.tokens) * layers)
    ]
    assert [copy for copy in copies if copy[0].startswith("upload")] == wanted


@pytest.mark.parametrize("schedule", SCHEDULES[:4])
def test_staged_through_a_ring(models: Models, coded: Coded, schedule: str) -> None:
    resident = models.resident(SPEC)
    with EmulatedDevice(schedule=schedule) as device:
        run = coded.run(device, resident.tokens, (0, 2, 3), host_memory="staged")
    assert_equal(resident, run)
    assert_clean(run)


def test_another_device_replays_what_was_recorded(models: Models, coded: Coded) -> None:
    resident = models.resident(SPEC, passes=2)
    with EmulatedDevice() as device:
        coded.run(device, resident.tokens, (1, 3, 4))
    with Checkpoint.open(models.path(SPEC)) as checkpoint, EmulatedDevice(schedule="random(9)") as other:
        other.sources.mount(CheckpointWeights(checkpoint))
        other.sources.mount(coded.weights("3bit"))
        replay(device.stream, other)
        assert not other.findings()


@pytest.mark.parametrize("pool", [1, 3, LAYERS, LAYERS + 3])
def test_a_checkpoint_is_loaded_by_its_path(models: Models, tmp_path, pool: int) -> None:
    resident, seen = models.resident(SPEC, passes=2), []
    for encoded in ([*range(LAYERS)], []):
        with EmulatedDevice() as device:
            run = run_fixed(
                lambda device: QwenModel.load_compressed(
                    models.path(SPEC), device, pool, side_file=tmp_path / "coded", on_encode=seen.append
                ),
                device, resident.tokens,
            )  # fmt: skip
        assert_equal(resident, run)
        assert_clean(run)
        assert run.uploads == (2 * LAYERS if pool < LAYERS else 0)
        # The second time the side file is there.
        assert seen == encoded
        seen.clear()


def test_a_load_that_fails_closes_what_it_opened(models: Models) -> None:
    with EmulatedDevice() as device, pytest.raises(RequestError, match="for bfloat16 weights"):
        QwenModel.load_compressed(models.path(tiny(LAYERS)), device)


# Order: what overlaps, and what every edge is for


def test_a_coded_slot_is_refilled_while_its_layer_computes(models: Models, coded: Coded) -> None:
    """Nothing orders the upload of layer i + 2 against the computing of layer i: it only waits for the decoding."""
    resident = models.resident(SPEC, passes=2)
    with EmulatedDevice() as device:
        coded.run(device, resident.tokens, STREAMED["all"])
    stream = device.stream
    order = Ordering(stream)
    found: dict[str, list[int]] = {"upload": [], "decode": [], "layer": []}
    for index, record in enumerate(stream):
        if isinstance(record, (Copy, Dispatch)) and record.label != "upload tokens":
            same = found.get(record.label.partition(" ")[0])
            if same is not None and not (same and stream[same[-1]].call == record.call):
                same.append(index)
    steps = 2 * LAYERS
    assert [len(found[kind]) for kind in found] == [steps] * 3
    for step in range(steps - 2):
        assert order.before(found["decode"][step], found["upload"][step + 2])
        assert not order.before(found["layer"][step], found["upload"][step + 2])
        assert not order.before(found["upload"][step + 2], found["layer"][step])
        # And the next layer crosses the link while this one is decoded.
        assert not order.before(found["decode"][step], found["upload"][step + 1])
        assert not order.before(found["upload"][step + 1], found["decode"][step])


def test_each_wait_and_each_claim_is_needed(models: Models, coded: Coded) -> None:
    resident = models.resident(SPEC, passes=2)
    with EmulatedDevice() as device:
        coded.run(device, resident.tokens, STREAMED["all"])
    stream = device.stream
    assert not check_stream(stream, device.kernels)
    needed = [
        index
        for index, record in enumerate(stream)
        if isinstance(record, (Wait, AssumeCommon)) and record.where.startswith(streaming.__file__ or "")
    ]
    assert len(needed) == 2 * 2 * LAYERS + (2 * LAYERS - 2)
    for index in needed:
        found = check_stream(stream.without(index), device.kernels)
        if isinstance(stream[index], AssumeCommon):
            assert [fault.kind for fault in found.state_faults] == ["tracker-stale"]
        else:
            assert found.hazards and found.hazards[0].missing.fence == stream[index].fence


def announced(model: QwenModel) -> None:
    model.begin(2)
    for _ in range(2):
        model.forward(PROMPT)


def by_hand(model: QwenModel) -> None:
    """The host does not wait for the last layers before it closes the source."""
    model.source.begin(1)
    for layer in range(LAYERS):
        model.source.ensure(layer)
        model.source.release(layer)


STATEMENTS = statements(compressed, streaming, upload)


def reports(coded: Coded, streamed: str, program, schedule: str) -> tuple[str, ...]:
    try:
        device = EmulatedDevice(schedule=schedule)
        model = coded.open(device, STREAMED[streamed])
        program(model)
        model.close()
    except DeviceError as error:
        return (f"{type(error).__name__}: {error}",)
    return tuple(found.report() for found in (*device.hazards, *device.state_faults))


def test_the_statements_are_found() -> None:
    assert [s.text for s in STATEMENTS if s.module is compressed] == ["self._device.wait_idle()"]
    assert len([s for s in STATEMENTS if s.module is streaming]) == 5


@pytest.mark.sampled
@pytest.mark.parametrize("statement", STATEMENTS, ids=str)
def test_a_missing_statement_is_reported_the_same_under_every_schedule(coded: Coded, statement: Statement) -> None:
    cases = list(itertools.product(STREAMED, (announced, by_hand)))
    assert all(reports(coded, *case, "timed") == () for case in cases)
    with without(statement):
        case = next((case for case in cases if reports(coded, *case, "timed")), None)
        if case is None:
            # Where the compressed source waits for everything anyway, the streaming one inside need not have.
            assert statement.function == "close" and statement.module is not compressed
            return
        seen = reports(coded, *case, "timed")
        for schedule in SCHEDULES:
            assert reports(coded, *case, schedule) == seen


# Memory


def test_memory_is_one_plain_layer_and_what_is_coded(models: Models, coded: Coded) -> None:
    resident = models.resident(SPEC, passes=2)
    sizes = [layer.nbytes for layer in coded.weights("3bit").layers]
    for streamed in STREAMED.values():
        with EmulatedDevice() as device:
            model = coded.open(device, streamed)
            model.forward(resident.tokens[0])
            held = device.memory.use().holders
            plain = held["plain.attention"] + held["plain.mlp"]
            slots = [size for name, size in held.items() if name.startswith("slot[")]
            kept = [size for name, size in held.items() if name.startswith("encoded[")]
            assert plain == layer_layout(SPEC.config()).nbytes
            assert slots == ([max(sizes[layer] for layer in streamed)] * 2 if streamed else [])
            assert kept == [size for layer, size in enumerate(sizes) if layer not in streamed]
            model.close()
            assert device.memory.use().holders.keys() <= {"kernel workspace"}
            living = {r.buffer for r in device.stream if isinstance(r, Allocate)}
            assert living == {r.buffer for r in device.stream if isinstance(r, Free)}


def test_what_does_not_fit_leaves_nothing_behind(models: Models, coded: Coded) -> None:
    with EmulatedDevice() as device:
        model = coded.open(device, (1, 3, 4))
        budget = device.memory.use().peak
        model.close()
    with EmulatedDevice(memory=budget - 1) as device:
        with pytest.raises(OutOfDeviceMemory):
            coded.open(device, (1, 3, 4))
        assert device.memory.use().used == 0
        with pytest.raises(Exception, match="no source is named"):
            device.sources.whole(encoded_name(0))


def test_other_weights_and_other_lists_are_refused(models: Models, coded: Coded) -> None:
    encoded = coded.weights("3bit")
    with Checkpoint.open(models.path(tiny(LAYERS))) as checkpoint, EmulatedDevice() as device:
        with pytest.raises(RequestError, match=r"for bfloat16 weights, and these are float32"):
            QwenModel(CheckpointWeights(checkpoint), device, compressed_layers(encoded, (0, 1)))
        with pytest.raises(RequestError, match=r"for bfloat16 weights, and these are float32"):
            EncodedMemory(CheckpointWeights(checkpoint), "3bit")
        with pytest.raises(RequestError, match=r"one of 4bit, 3bit, not '5bit'"):
            EncodedMemory(CheckpointWeights(checkpoint), "5bit")
    layout, config = layer_layout(SPEC.config()), SPEC.config()
    with EmulatedDevice() as device:
        for streamed in ((2, 1), (0, 0), (-1,), (LAYERS,)):
            with pytest.raises(ValueError, match="in growing order"):
                CompressedLayers(device, layout, config.dtype, encoded, None, streamed, 2)
        with pytest.raises(ValueError, match="need a host"):
            CompressedLayers(device, layout, config.dtype, encoded, None, (0,), 2)
        with pytest.raises(ValueError, match="'pinned' or 'staged'"):
            coded.open(device, (0,), host_memory="paper")


# Plans


@pytest.mark.parametrize("host", [False, True])
@pytest.mark.parametrize("codec", ["3bit", "4bit"])
def test_a_plan_that_compresses_is_what_a_model_takes(models: Models, coded: Coded, codec: str, host: bool) -> None:
    spec, shape = tiny(LAYERS, hidden=64, heads=4, intermediate=96, **BF16), Shape(context=12, chunk=6)
    config, encoded = spec.config(), coded.weights(codec, spec)
    resident = models.resident(spec, torch.tensor([[5, 3, 60, 17, 2, 9]]), passes=3, context=12, chunk=6)
    everything = make_plan(config, shape, None, compress=codec, encoded=encoded, host_embedding=host)
    assert everything.compress == "none" and everything.resident == LAYERS
    seen = set()
    for budget in range(everything.peak - 1, 0, -2048):
        try:
            plan = make_plan(config, shape, budget, compress=codec, encoded=encoded, host_embedding=host)
        except RequestError as error:
            assert "one layer and 2 slots of coded ones" in str(error)
            break
        assert plan.compress == codec and plan.peak <= budget
        if plan.streamed in seen:
            continue
        seen.add(plan.streamed)
        # With one streamed layer fewer it would not fit.
        fewer = len(plan.streamed) - 1 if len(plan.streamed) > 3 else 0
        if plan.streamed:
            slots = 2 if fewer else 0
            less = Plan(LAYERS, spread(LAYERS, fewer), slots, plan.layer_bytes, plan.always, None, codec, plan.encoded)
            assert less.peak > budget
        with EmulatedDevice(memory=budget) as device:
            run = run_fixed(
                lambda device, plan=plan: QwenModel(
                    CheckpointWeights(Checkpoint.open(models.path(spec))), device,
                    planned_layers(plan, encoded=encoded), context=12, chunk=6, host_embedding=plan.host_embedding,
                ),
                device, resident.tokens,
            )  # fmt: skip
            moved = sum(r.dst.size for r in device.stream if isinstance(r, Copy) and r.label.startswith("upload layer"))
        assert_equal(resident, run)
        assert_clean(run)
        assert plan.moved * 3 == moved
        assert plan.peak == run.memory.peak
    assert len(seen) >= 2


def test_more_layers_stay_and_fewer_bytes_move() -> None:
    config, shape, budget = PUBLISHED["7b"], Shape(context=1024, chunk=64), 8 * 2**30
    plans = {codec: make_plan(config, shape, budget, compress=codec) for codec in ("none", "4bit", "3bit")}
    assert plans["none"].resident < plans["4bit"].resident < plans["3bit"].resident
    assert all(plan.peak <= budget for plan in plans.values())
    times = {codec: predict(config, shape, plan, GPU_SPECS["h200"])[1] for codec, plan in plans.items()}
    for codec, plan in plans.items():
        assert times[codec].binding == "link"
        assert times[codec].link == pytest.approx(plan.moved / GPU_SPECS["h200"].link_bandwidth, rel=0.01)
        assert times[codec].time == pytest.approx(times[codec].bound, rel=0.02)
    assert times["none"].time / times["3bit"].time > 1.65


def test_a_plan_and_the_coded_layers_have_to_be_of_one_codec(coded: Coded) -> None:
    plan = make_plan(SPEC.config(), Shape(context=12, chunk=6), 10**9, compress="3bit")
    assert plan.compress == "none"
    plan = Plan(LAYERS, (0, 1, 2), 2, 1, {}, None, "4bit", (1,) * LAYERS)
    with EmulatedDevice() as device, pytest.raises(ValueError, match="for 4bit codes, and these are 3bit"):
        planned_layers(plan, encoded=coded.weights("3bit"))(device, SizedWeights(SPEC.config()))


def test_sizes_alone_are_close_to_those_of_real_layers(coded: Coded) -> None:
    config = PUBLISHED["0.5b"]
    for codec, bits in (("3bit", 11.18), ("4bit", 12.01)):
        sized = SizedEncoding(config, codec)
        [layer] = set(sized.layers)
        assert 8 * layer.nbytes / layer.count == pytest.approx(bits, abs=0.02)
        assert sized.nbytes(encoded_name(3)) == layer.nbytes and sized.nbytes("other") is None
        with pytest.raises(DeviceError, match="known by its size only"):
            sized.bytes(encoded_name(3))


def test_a_model_of_sizes_streams_coded() -> None:
    config = PUBLISHED["0.5b"]
    with SimulatedDevice(GPU_SPECS["laptop"], check=True) as device:
        encoded = SizedEncoding(config, "3bit")
        made = compressed_layers(encoded, tuple(range(24)))
        model = QwenModel(SizedWeights(config), device, made, context=64)
        model.begin(2)
        for _ in range(2):
            model.forward(torch.zeros(1, 4, dtype=torch.int64))
        model.close()
        device.raise_hazards()


# On a GPU


@pytest.mark.cuda
@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("streamed", STREAMED)
@pytest.mark.parametrize("codec", ["3bit", "4bit"])
def test_a_gpu_gives_the_bytes_of_its_resident_model(
    models: Models, coded: Coded, codec: str, streamed: str, check: bool
) -> None:
    from xinfer_lab.residency.parity import greedy_run

    with CudaDevice(check=check) as device:
        resident = greedy_run(lambda device: QwenModel.load(models.path(SPEC), device), device, PROMPT, 4)
    with CudaDevice(check=check) as device:
        run = coded.run(device, resident.tokens, STREAMED[streamed], codec)
    assert_equal(resident, run)
    assert_clean(run)


@pytest.mark.cuda
def test_a_gpu_told_to_raise_stops_before_the_race(coded: Coded) -> None:
    [wait] = [s for s in STATEMENTS if s.module is streaming and "copied" in s.text]
    with without(wait), pytest.raises(HazardError), CudaDevice(check=True) as device:
        announced(coded.open(device, STREAMED["all"]))


def test_made_up_weights_may_be_asked_for_by_several_threads_at_once():
    from concurrent.futures import ThreadPoolExecutor

    from xinfer_lab.qwen2.synthetic import SyntheticSpec
    from xinfer_lab.residency.weights import SyntheticWeights

    config = SyntheticSpec(layers=2, hidden=32, heads=2, kv_heads=1, intermediate=48, vocab=64).config()
    weights = SyntheticWeights(config, seed=1)
    names = [f"model.layers.0.{name}" for name in ("mlp.up_proj.weight", "input_layernorm.weight")]
    alone = {name: weights.bytes(name).clone() for name in names}

    class Eager(tuple):
        """A remembered tensor that another thread replaces between two looks at it."""

        def __getitem__(self, place):
            weights._last = (names[1], alone[names[1]])
            return super().__getitem__(place)

    weights._last = Eager((names[0], alone[names[0]]))
    assert weights.bytes(names[0]).equal(alone[names[0]])
    with ThreadPoolExecutor(4) as pool:
        for name, got in zip(names * 50, pool.map(weights.bytes, names * 50), strict=True):
            assert got.equal(alone[name])
