"""Planned layers: some stay, the rest stream; and the plan that says which."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import BufferRangeError
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.device.records import Allocate, Copy, Dispatch
from xinfer_lab.qwen2.config import PUBLISHED
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.qwen2.synthetic import SyntheticSpec
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.factories import planned_layers, resident_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.parity import compare_logits
from xinfer_lab.residency.plan import Plan, Shape, make_plan
from xinfer_lab.residency.plan_times import predict
from xinfer_lab.residency.planned import spread
from xinfer_lab.residency.weights import SyntheticWeights

SHAPE = Shape(context=12, chunk=6)


def weights(layers, dtype="float32", **shape):
    spec = SyntheticSpec(layers=layers, hidden=32, heads=2, kv_heads=1, intermediate=48, vocab=64, dtype=dtype, **shape)
    return SyntheticWeights(spec.config(), seed=layers)


def run(source, factory, device, steps=4, host_embedding=False):
    """Logits of a prompt of 5 tokens and then ``steps - 1`` of one, and the device's peak."""
    generator = torch.Generator().manual_seed(3)
    model = QwenModel(
        source, device, factory, context=SHAPE.context, chunk=SHAPE.chunk, host_embedding=host_embedding
    )  # fmt: skip
    model.begin(steps)
    logits = [
        model.forward(torch.randint(0, 64, (1, 5 if step == 0 else 1), generator=generator)) for step in range(steps)
    ]
    peak = device.memory.use().peak
    model.close()
    return logits, peak


@pytest.mark.parametrize("schedule", ["timed", "copies_first", "copies_last", "random(5)"])
@pytest.mark.parametrize(
    ("layers", "streamed", "slots"),
    [(6, (0, 3), 2), (7, (6,), 2), (7, (1, 3, 5), 2), (5, (0, 1, 2, 3, 4), 3), (8, (2, 4, 7), 2)],
)
def test_any_set_of_streamed_layers_gives_the_bytes_of_the_resident_model(layers, streamed, slots, schedule):
    source = weights(layers, "bfloat16")
    expected, _ = run(source, resident_layers(), EmulatedDevice())
    device = EmulatedDevice(schedule=schedule)
    plan = Plan(layers, streamed, slots, 0, {}, None)
    logits, _ = run(source, planned_layers(plan), device)
    assert compare_logits(expected, logits) == (True, 0.0)
    assert not device.hazards
    assert not device.state_faults


@pytest.mark.parametrize("host_memory", ["pinned", "staged"])
def test_a_pass_moves_the_streamed_layers_and_nothing_else(host_memory):
    source = weights(6)
    device = EmulatedDevice()
    steps, plan = 4, Plan(6, (1, 4), 2, layer_layout(source.config).nbytes, {}, None)
    run(source, planned_layers(plan, host_memory), device, steps)
    uploads = [r for r in device.stream if isinstance(r, Copy) and r.dst.buffer.startswith("slot[")]
    assert sum(copy.dst.size for copy in uploads) == steps * plan.moved


@pytest.mark.parametrize("streamed", [(), (2, 1), (1, 1), (6,), (-1,)])
def test_streamed_layers_must_be_some_of_the_model_in_order(streamed):
    from xinfer_lab.residency.host import PinnedLayers
    from xinfer_lab.residency.planned import PlannedLayers

    source, device = weights(6), EmulatedDevice()
    device.sources.mount(source)
    layout = layer_layout(source.config)
    host = PinnedLayers(device, layout, 1)
    with pytest.raises(ValueError, match="streamed layers must be some of 0 to 5"):
        PlannedLayers(device, layout, torch.float32, host, 6, streamed, 2)


@given(layers=st.integers(1, 100), data=st.data())
def test_streamed_layers_are_spread_evenly(layers, data):
    count = data.draw(st.integers(0, layers))
    chosen = spread(layers, count)
    assert len(chosen) == count == len(set(chosen))
    assert list(chosen) == sorted(chosen)
    assert all(0 <= layer < layers for layer in chosen)
    gaps = [b - a for a, b in zip(chosen, [*chosen[1:], chosen[0] + layers], strict=True)] if chosen else [0]
    assert max(gaps) - min(gaps) <= 1


@settings(max_examples=12, deadline=None)
@given(
    layers=st.integers(3, 7),
    extra=st.integers(0, 4000),
    room=st.integers(2, 8),
    dtype=st.sampled_from(["float32", "bfloat16"]),
    host=st.sampled_from([False, True, None]),
)
def test_the_plan_says_what_the_device_then_uses(layers, extra, room, dtype, host):
    source = weights(layers, dtype)
    layer = layer_layout(source.config).nbytes
    base = sum(make_plan(source.config, SHAPE, None).always.values())
    budget = base + room * layer + min(extra, layer - 1)
    plan = make_plan(source.config, SHAPE, budget, host_embedding=host)
    if not host:
        assert plan.resident + plan.slots == min(room, layers) if plan.streamed else room >= layers
    assert plan.peak <= budget
    device = EmulatedDevice(memory=budget)
    logits, peak = run(source, planned_layers(plan), device, host_embedding=plan.host_embedding)
    assert not device.hazards
    assert not device.state_faults
    assert peak <= plan.peak <= peak * 1.02 + 1
    assert compare_logits(run(source, resident_layers(), EmulatedDevice())[0], logits) == (True, 0.0)


def test_a_budget_for_less_than_two_slots_is_refused_with_the_bytes_that_are_needed():
    config = weights(6).config
    base, layer = sum(make_plan(config, SHAPE, None).always.values()), layer_layout(config).nbytes
    plan = make_plan(config, SHAPE, base + 2 * layer, host_embedding=False)
    assert plan.slots == 2
    with pytest.raises(RequestError, match=r"are not enough: .* are needed besides the layers .* and 2 slots of"):
        make_plan(config, SHAPE, base + 2 * layer - 1, host_embedding=False)
    # Without the embedding there a smaller budget is enough, and of two refusals the first is heard.
    assert make_plan(config, SHAPE, base + 2 * layer - 1).host_embedding
    with pytest.raises(RequestError, match="are not enough"):
        make_plan(config, SHAPE, layer)


def test_the_embedding_goes_to_the_host_where_fewer_bytes_move_then():
    config = weights(6).config
    base, layer = sum(make_plan(config, SHAPE, None).always.values()), layer_layout(config).nbytes
    table = config.vocab_size * config.hidden_size * config.dtype.itemsize
    assert 2 * layer > table > layer / 4
    least, best = base - table + 4 * layer, base + 4 * layer
    assert make_plan(config, SHAPE, least).host_embedding
    assert make_plan(config, SHAPE, least).resident == make_plan(config, SHAPE, best).resident
    # Where it would make no difference, it stays where it is read fastest.
    assert not make_plan(config, SHAPE, None).host_embedding
    assert not make_plan(config, SHAPE, best).host_embedding


def test_the_embedding_of_a_tied_model_stays_in_device_memory():
    source = weights(6, tied=True)
    base, layer = sum(make_plan(source.config, SHAPE, None).always.values()), layer_layout(source.config).nbytes
    assert not make_plan(source.config, SHAPE, base + 3 * layer).host_embedding
    with EmulatedDevice() as device, pytest.raises(RequestError, match="is its head too"):
        run(source, resident_layers(), device, host_embedding=True)


def test_an_embedding_on_the_host_takes_no_device_memory_and_is_read_by_the_kernel_alone():
    source, device = weights(6), EmulatedDevice()
    run(source, resident_layers(), device, host_embedding=True)
    records = device.stream.records
    held = next(r for r in records if isinstance(r, Allocate) and r.buffer == "embedding")
    assert held.heap == "upload"
    assert not any(isinstance(r, Copy) and r.src.buffer == "embedding" for r in records)
    readers = {
        r.kernel for r in records if isinstance(r, Dispatch) and "embedding" in {v.buffer for v in r.operands.values()}
    }
    assert readers == {"embed"}


def test_other_operands_than_the_table_are_not_read_out_of_host_memory():
    with EmulatedDevice() as device:
        heap, out = device.create_upload_heap(1024), device.create_buffer(1024)
        tokens, table = heap.view("int64", (1, 2)), heap.view("float32", (4, 8), 256)
        with pytest.raises(BufferRangeError, match=r"operand 'tokens'.*kernels work on device memory only"):
            device.direct_queue.dispatch("embed", tokens=tokens, weight=table, out=out.view("float32", (1, 2, 8)))


def test_what_the_device_holds_already_is_taken_into_account():
    config = weights(6).config
    base, layer = sum(make_plan(config, SHAPE, None).always.values()), layer_layout(config).nbytes
    free = make_plan(config, SHAPE, base + 4 * layer)
    held = make_plan(config, SHAPE, base + 4 * layer, reserved={"cuBLAS workspace": layer})
    assert (free.resident, held.resident) == (2, 1)


@pytest.mark.parametrize(("size", "budget_gib"), [("7b", 12), ("32b", 12), ("72b", 24)])
def test_a_decode_step_takes_the_plans_bound(size, budget_gib):
    """DESIGN section 7: no step can beat max(resident time, moved bytes / link); a plan comes within 3 % of it."""
    config, shape = PUBLISHED[size], Shape(context=4100, chunk=4096)
    plan = make_plan(config, shape, budget_gib * 2**30)
    _, decode = predict(config, shape, plan, GPU_SPECS["h200"])
    assert decode.binding == "link"
    assert 1.0 - 1e-9 <= decode.time / decode.bound <= 1.03
