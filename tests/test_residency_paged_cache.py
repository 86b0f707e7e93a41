"""The paged KV cache: pages go to host memory and come back, and every layer reads the bytes of a contiguous cache."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models import Models, assert_clean, assert_equal, tiny
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import KernelError, OutOfDeviceMemory
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.device.memory import WORKSPACE
from xinfer_lab.device.records import Copy, Dispatch, View
from xinfer_lab.device.simulated import SimulatedDevice
from xinfer_lab.paging.policy import POLICIES
from xinfer_lab.paging.pool import HybridMemoryPool
from xinfer_lab.qwen2 import Checkpoint
from xinfer_lab.qwen2.config import PUBLISHED
from xinfer_lab.qwen2.layout import layer_layout
from xinfer_lab.residency.cache import cache_shape, contiguous_cache
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.factories import planned_layers, resident_layers, streaming_layers
from xinfer_lab.residency.kv_kernels import GATHER_PAGES, SCATTER_PAGES, move_params
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.paged import PagedLayers, layer_pages
from xinfer_lab.residency.paged_cache import PagedCache, cache_pages, paged_cache, tokens_a_page
from xinfer_lab.residency.parity import Run, run_fixed
from xinfer_lab.residency.plan import Shape, make_plan
from xinfer_lab.residency.plan_times import predict
from xinfer_lab.residency.weights import CheckpointWeights, SizedWeights, SyntheticWeights

SCHEDULES = ("timed", "copies_first", "copies_last", "random(1)", "random(2)")
PROMPT = torch.arange(19).view(1, 19)
PASSES = 8


def cached(
    models: Models, spec, device, feed, frames: int, page_bytes: int = 256, policy: str = "belady", **shape
) -> Run:
    """``feed`` through a resident model whose cache is in pages, of which ``frames`` fit on the device."""

    def load(device):
        with Checkpoint.open(models.path(spec)) as checkpoint:
            cache = paged_cache(frames * page_bytes, policy, page_bytes)
            return QwenModel(CheckpointWeights(checkpoint), device, resident_layers(), make_cache=cache, **shape)

    return run_fixed(load, device, feed)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("page_bytes", "frames"), [(256, 2), (256, 5), (512, 7), (1024, 3), (8192, 2), (256, 500)])
def test_any_page_size_any_pool_any_policy(models: Models, page_bytes: int, frames: int, policy: str) -> None:
    spec = tiny(5)
    resident = models.resident(spec, PROMPT, PASSES)
    with EmulatedDevice(schedule="random(3)") as device:
        run = cached(models, spec, device, resident.tokens, frames, page_bytes, policy)
    assert_equal(resident, run)
    assert_clean(run)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_any_dtype_under_any_schedule(models: Models, dtype: str, schedule: str) -> None:
    spec = tiny(3, dtype=dtype)
    resident = models.resident(spec, PROMPT, PASSES)
    with EmulatedDevice(schedule=schedule) as device:
        run = cached(models, spec, device, resident.tokens, 3)
    assert_equal(resident, run)
    assert_clean(run)


@pytest.mark.parametrize("shape", [{"batch": 3}, {"context": 27, "chunk": 19}, {"batch": 2, "positions": None}])
def test_batches_and_all_positions(models: Models, shape: dict[str, int | None]) -> None:
    prompt = torch.arange(19 * (shape.get("batch") or 1)).view(-1, 19)
    resident = models.resident(tiny(4), prompt, PASSES, **shape)
    with EmulatedDevice() as device:
        run = cached(models, tiny(4), device, resident.tokens, 4, 1024, **shape)
    assert_equal(resident, run)
    assert_clean(run)


@settings(max_examples=20)
@given(data=st.data())
def test_any_passes(models: Models, data: st.DataObject) -> None:
    """Prefill in pieces, single tokens, a new sequence in between: whatever is fed."""
    spec = tiny(data.draw(st.integers(1, 4)))
    lengths = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=5))
    feed = [torch.randint(0, 64, (1, n), generator=torch.Generator().manual_seed(n)) for n in lengths]
    page_bytes, frames = 128 * data.draw(st.sampled_from([2, 4, 6])), data.draw(st.integers(2, 9))
    logits = {}
    for name in ("contiguous", "paged"):
        with (
            EmulatedDevice(schedule=data.draw(st.sampled_from(SCHEDULES))) as device,
            Checkpoint.open(models.path(spec)) as checkpoint,
        ):
            options = {"make_cache": paged_cache(frames * page_bytes, "lru", page_bytes)} if name == "paged" else {}
            model = QwenModel(CheckpointWeights(checkpoint), device, resident_layers(), **options)
            seen = [model.forward(tokens) for tokens in feed]
            model.reset()
            logits[name] = [*seen, *(model.forward(tokens) for tokens in feed)]
            model.close()
            model.close()
            assert not device.hazards, device.hazards[0].report()
            assert set(device.memory.use().holders) <= {"kernel workspace"}
    assert_equal(logits["contiguous"], logits["paged"])


def test_a_layer_with_a_window_reads_only_the_pages_that_it_sees(models: Models) -> None:
    config = replace(tiny(4).config(), sliding_window=6, max_window_layers=2)
    logits, gathers = [], []
    for cache in (contiguous_cache, paged_cache(1024, page_bytes=256)):
        with EmulatedDevice() as device:
            model = QwenModel(SyntheticWeights(config, 1), device, resident_layers(), make_cache=cache)
            feed = [PROMPT, *(torch.tensor([[step]]) for step in range(1, PASSES))]
            logits.append([model.forward(tokens) for tokens in feed])
            model.close()
            gathers = [r for r in device.stream if isinstance(r, Dispatch) and r.kernel == "gather_pages"]
            assert not device.hazards
    assert_equal(*logits)
    moved = {layer: 0 for layer in range(4)}
    for record in gathers:
        moved[int(record.label.rpartition(" ")[2])] += record.params["tokens"]
    assert moved[0] == moved[1] == sum(range(19, 19 + PASSES - 1))
    assert moved[2] == moved[3] < 9 * (PASSES - 1)


def test_pages_go_home_and_come_back_and_what_did_not_change_is_not_written_again(models: Models) -> None:
    spec = tiny(5)
    resident = models.resident(spec, PROMPT, PASSES)
    with EmulatedDevice() as device:
        cached(models, spec, device, resident.tokens, 4, policy="lru")
        home = [r.label for r in device.stream if isinstance(r, Copy) and r.queue == "write back"]
        back = [r.label for r in device.stream if isinstance(r, Copy) and r.label.startswith("bring kv")]
    blocks, complete = -(-19 // 4), 19 // 4
    assert {f"bring kv[{layer}][{block}]" for layer in range(5) for block in range(blocks)} <= set(back)
    full = [label for label in home if label.endswith(tuple(f"[{block}]" for block in range(complete)))]
    assert len(full) == len(set(full)), "a page that is full goes home once"


def test_weights_and_cache_from_one_pool(models: Models) -> None:
    spec = tiny(5)
    resident = models.resident(spec, PROMPT, PASSES)
    for policy in POLICIES:
        with EmulatedDevice(schedule="random(6)") as device, Checkpoint.open(models.path(spec)) as checkpoint:
            weights = CheckpointWeights(checkpoint)
            layout, shape = layer_layout(weights.config), cache_shape(weights.config, 1, 64)
            a_layer = layer_pages(layout, 512)
            pool = HybridMemoryPool(
                device, frames=3 * a_layer, pages=5 * a_layer + cache_pages(shape, 512), page_bytes=512, policy=policy
            )
            model = QwenModel(
                weights, device,
                lambda _, w: PagedLayers(pool, layout, w.config.dtype, 5, owns_pool=False),  # noqa: B023
                make_cache=lambda d, s: PagedCache(d, s, pool, owns_pool=False),  # noqa: B023
                context=64,
            )  # fmt: skip
            logits = [model.forward(tokens) for tokens in resident.tokens]
            seen = pool.statistics()
            model.close()
            assert not list(pool.table)
            pool.close()
            assert not device.hazards, device.hazards[0].report()
            assert not device.state_faults
        assert_equal(resident, logits)
        assert seen.evictions
        assert seen.bytes_to_host


def test_too_little_is_refused_with_what_would_do() -> None:
    shape = cache_shape(tiny(2).config(), 1, 64)
    with pytest.raises(RequestError, match=r"holds no token of this cache, whose keys and values take 64 B a layer"):
        tokens_a_page(shape, 32)
    with pytest.raises(RequestError, match=r"1 of the pages of 256 B, and a cache needs 2: choose 512 B or more"):
        paged_cache(511, page_bytes=256)


def test_a_context_of_128k_tokens_under_a_budget_that_holds_a_third_of_it() -> None:
    """Qwen2.5-7B's shape in bfloat16 on sizes alone: the cache is 7 GiB, the pool 2.4 GiB."""
    context, chunk = 131072, 4096
    config = replace(PUBLISHED["7b"], max_position_embeddings=context)
    shape = cache_shape(config, 1, context)
    whole = config.num_hidden_layers * shape.layer_bytes
    assert whole == 7 * 2**30
    spec = GPU_SPECS["h200"]
    pool_bytes = whole // 3
    budget = 20 * 2**30
    with pytest.raises(OutOfDeviceMemory):
        QwenModel(
            SizedWeights(config), SimulatedDevice(spec, memory=budget), resident_layers(), context=context, chunk=chunk
        )
    device = SimulatedDevice(spec, memory=budget, check=False)
    model = QwenModel(
        SizedWeights(config),
        device,
        resident_layers(),
        make_cache=paged_cache(pool_bytes),
        context=context,
        chunk=chunk,
    )
    model.forward(torch.zeros(1, chunk, dtype=torch.int64))
    # The rest of the prompt takes a while even on sizes alone: its tokens are put into their pages and not computed.
    for layer in range(config.num_hidden_layers):
        model.cache.release(layer, chunk, context - chunk - 3)
    model.position = context - 3
    one = torch.zeros(1, 1, dtype=torch.int64)
    model.forward(one)
    start, first, before = device.now, len(device.stream), model.cache.pool.statistics()
    model.forward(one)
    step, after = device.now - start, model.cache.pool.statistics()
    moved = after.bytes_to_device - before.bytes_to_device
    assert 0.6 * whole < moved < 0.72 * whole
    assert after.bytes_to_host - before.bytes_to_host < 0.03 * whole, "what does not change goes home once"
    # The link is what a step takes: everything else hides behind it.
    assert 1 < step / (moved / spec.link_bandwidth) < 1.15
    # Reading the prompt again instead would take many times as long.
    gathers = [r for r in device.stream.records[first:] if isinstance(r, Dispatch) and r.kernel == "gather_pages"]
    assert sum(r.params["tokens"] for r in gathers) == config.num_hidden_layers * model.position - 28
    model.close()


def _views(pages: int, size: int = 4, capacity: int = 32) -> dict[str, View]:
    operands = {"kv": View("cache", 256, (2, capacity, 1, 2, 4), "float32")}
    token = 2 * 4 * 4
    for number in range(pages):
        operands[f"page{number}"] = View("pool", number * 2 * size * token, (2, size, 1, 2, 4), "float32")
    return operands


@pytest.mark.parametrize(
    ("first", "position", "tokens", "pages"), [(0, 0, 4, 1), (4, 4, 10, 3), (8, 10, 3, 2), (8, 9, 1, 1)]
)
@pytest.mark.parametrize("kernel", [GATHER_PAGES, SCATTER_PAGES], ids=lambda kernel: kernel.name)
def test_what_the_kernels_declare_is_what_they_do(kernel, first, position, tokens, pages) -> None:
    operands, params = _views(pages), move_params(first, position, tokens)
    kernel.check(operands, params)
    memory = {
        "cache": torch.arange(16384, dtype=torch.int32).view(torch.uint8),
        "pool": torch.arange(9999).view(torch.uint8),
    }
    before = {name: raw.clone() for name, raw in memory.items()}
    tensors = {
        name: memory[v.buffer][v.offset : v.offset + v.nbytes].view(torch.float32).view(v.shape)
        for name, v in operands.items()
    }
    kernel.run(tensors, params)
    access = kernel.access(operands, params)
    written = {name: torch.zeros(raw.numel(), dtype=torch.bool) for name, raw in memory.items()}
    for span in access.writes:
        written[span.buffer][span.offset : span.end] = True
    for name, raw in memory.items():
        assert torch.equal(raw[~written[name]], before[name][~written[name]])
    reads, writes = ([span.size for span in spans] for spans in (access.reads, access.writes))
    assert sum(reads) == sum(writes) == 2 * tokens * 32
    for read, write in zip(access.reads, access.writes, strict=True):
        assert torch.equal(memory[write.buffer][write.offset : write.end], before[read.buffer][read.offset : read.end])
    cost = kernel.cost(operands, params)
    assert (cost.flops, cost.bytes, cost.launches) == (0, 2 * sum(reads), pages)
    assert kernel.workspace(operands, params) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"params": {"first": 0}}, "parameters must be"),
        ({"params": move_params(0, -1, 4)}, "position must be a whole number, not -1"),
        ({"params": move_params(0, 0, 9)}, "2 pages hold 8 of the 9 tokens"),
        ({"params": move_params(0, 0, 4)}, "'page1' holds none of the tokens"),
        ({"params": move_params(28, 28, 8)}, "'kv' has 32 tokens, not 36"),
        ({"operands": {"page1": View("pool", 0, (2, 5, 1, 2, 4), "float32")}}, "'page1' must have the shape"),
        ({"operands": {"page1": View("pool", 0, (2, 4, 1, 2, 4), "float16")}}, "'page1' must be float32"),
        ({"operands": {"other": View("pool", 0, (2, 4, 1, 2, 4), "float32")}}, "operands are"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(change, message) -> None:
    operands = _views(2) | change.get("operands", {})
    with pytest.raises(KernelError, match=f"gather_pages: .*{message}|gather_pages: {message}"):
        GATHER_PAGES.check(operands, change.get("params", move_params(0, 0, 8)))


def test_streaming_layers_with_a_paged_cache(models: Models) -> None:
    spec = tiny(6)
    resident = models.resident(spec, PROMPT, PASSES)
    with EmulatedDevice(schedule="copies_last") as device, Checkpoint.open(models.path(spec)) as checkpoint:
        weights = CheckpointWeights(checkpoint)
        model = QwenModel(weights, device, streaming_layers(2), make_cache=paged_cache(1024, "clock", 256))
        model.begin(PASSES)
        logits = [model.forward(tokens) for tokens in resident.tokens]
        model.close()
        assert not device.hazards
        assert not device.state_faults
    assert_equal(resident, logits)


@pytest.mark.parametrize(("frames", "stay"), [(2, 0), (5, 1), (5, 3), (500, 2)])
def test_a_plan_counts_a_cache_in_pages_and_is_run_within_its_budget(models: Models, frames: int, stay: int) -> None:
    spec = tiny(6)
    resident = models.resident(spec, PROMPT, PASSES, context=27, chunk=19)
    shape = Shape(27, chunk=19, make_cache=paged_cache(frames * 256, "lru", 256))
    always = sum(make_plan(spec.config(), shape, None, host_embedding=False).always.values())
    budget = always + (2 + stay) * layer_layout(spec.config()).nbytes
    plan = make_plan(spec.config(), shape, budget, host_embedding=False)
    assert (plan.resident, len(plan.streamed), plan.peak) == (stay, 6 - stay, budget)
    with EmulatedDevice(memory=budget) as device, Checkpoint.open(models.path(spec)) as checkpoint:
        model = QwenModel(
            CheckpointWeights(checkpoint), device, planned_layers(plan), context=27, chunk=19,
            make_cache=shape.make_cache,
        )  # fmt: skip
        model.begin(PASSES)
        logits = [model.forward(tokens) for tokens in resident.tokens]
        use = device.memory.use()
        model.close()
        assert not device.hazards
    assert_equal(resident, logits)
    # The plan's workspace is that of a whole chunk at the end of the context.
    workspace = use.holders[WORKSPACE]
    assert use.peak - workspace == plan.peak - plan.always[WORKSPACE]
    assert workspace <= plan.always[WORKSPACE]


def test_with_a_cache_in_pages_a_step_is_predicted_with_all_of_them() -> None:
    config, spec = replace(PUBLISHED["0.5b"], num_hidden_layers=4), GPU_SPECS["h200"]
    whole = 4 * cache_shape(config, 1, 32768).layer_bytes
    steps = {}
    for share in (4, 2, 1):
        shape = Shape(32768, chunk=64, make_cache=paged_cache(whole // share))
        _, steps[share] = predict(config, shape, make_plan(config, shape, None), spec)
    assert steps[1].link == 0
    for share, rest in ((4, 3 / 4), (2, 1 / 2)):
        assert rest * whole / spec.link_bandwidth < steps[share].link < 1.3 * whole / spec.link_bandwidth
        assert steps[share].link <= steps[share].time < 1.5 * steps[share].link
