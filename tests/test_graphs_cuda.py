"""On a GPU: kept command lists are graphs. The same bytes with and without, in every residency; within their memory."""

from __future__ import annotations

import functools
import json
import shutil

import pytest
import torch

from tests.models import Models, assert_clean, assert_equal
from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.device.errors import OutOfDeviceMemory
from xinfer_lab.device.graphs import GRAPH_MEMORY, RECORDED_LISTS
from xinfer_lab.qwen2 import Checkpoint, SyntheticSpec, layers
from xinfer_lab.qwen2.fused import fused_for
from xinfer_lab.qwen2.layers import LayerSpec
from xinfer_lab.residency.experts import resident_experts
from xinfer_lab.residency.factories import SourceFactory, paged_layers, resident_layers, serial_layers, streaming_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.paged_cache import paged_cache
from xinfer_lab.residency.paged_experts import paged_experts
from xinfer_lab.residency.parity import Run, run_fixed
from xinfer_lab.residency.weights import CheckpointWeights

pytestmark = pytest.mark.cuda

STEPS = 7
FEED = (torch.arange(30).view(1, 30) % 256, *(torch.tensor([[3 * step + 1]]) for step in range(STEPS)))


def small(**options: object) -> SyntheticSpec:
    given = {"layers": 5, "hidden": 256, "heads": 8, "kv_heads": 2, "intermediate": 704, "dtype": "bfloat16"}
    return SyntheticSpec(**{**given, **options})


def run(models: Models, spec: SyntheticSpec, factory: SourceFactory, device: CudaDevice, **shape) -> Run:
    def load(device):
        weights = CheckpointWeights(Checkpoint.open(models.path(spec)))
        return QwenModel(weights, device, factory, **{"context": 64, **shape})

    return run_fixed(load, device, FEED)


RESIDENCIES = {
    "resident": resident_layers(),
    "serial": serial_layers(),
    "2 slots": streaming_layers(2),
    "3 slots": streaming_layers(3),
    "3 slots, staged": streaming_layers(3, "staged"),
    "paged": paged_layers(3 * 2**21, "lru", 2**16),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_graphs_change_no_byte_in_any_residency(models: Models, dtype: str) -> None:
    spec = small(dtype=dtype)
    with CudaDevice(graphs=False) as device:
        right = run(models, spec, resident_layers(), device)
        assert device.graphs is None
    for name, factory in RESIDENCIES.items():
        for options in ({}, {"graphs": False}, {"check": True}, {"measure": True}):
            with CudaDevice(**options) as device:
                found = run(models, spec, factory, device)
                if name == "resident" and not options:
                    assert device.graphs is not None and device.graphs.captured == 5 + 2  # layers, embedding, head
            assert_clean(found)
            assert_equal(right, found)


@pytest.mark.parametrize("codec", ["3bit", "4bit"])
def test_coded_layers_replay_too(models: Models, codec: str, tmp_path) -> None:
    spec, path = small(), models.path(small())
    with CudaDevice() as device:
        right = run(models, spec, resident_layers(), device)
    for pool in (2, 5):
        load = functools.partial(
            QwenModel.load_compressed, path, pool=pool, codec=codec, side_file=tmp_path / codec, context=64
        )
        with CudaDevice() as device:
            assert_equal(right, run_fixed(lambda device, load=load: load(device=device), device, FEED))
            assert device.graphs is not None and device.graphs.captured >= 2 * 5


@pytest.mark.parametrize("options", [{}, {"hidden": 384, "heads": 6, "kv_heads": 1}, {"tied": True}])
@pytest.mark.parametrize("window", [None, 9])
def test_other_shapes_replay_the_same_bytes(models: Models, options: dict, window: int | None, tmp_path) -> None:
    path = shutil.copytree(models.path(small(**options)), tmp_path / "model")
    config = json.loads((path / "config.json").read_text())
    config.pop("layer_types", None)
    config |= {"use_sliding_window": window is not None, "sliding_window": window, "max_window_layers": 2}
    (path / "config.json").write_text(json.dumps(config))
    found = []
    for graphs in (True, False):
        for pool in (2, 5):
            with CudaDevice(graphs=graphs) as device:
                load = functools.partial(QwenModel.load_streaming, path, pool=pool, context=64)
                found.append(run_fixed(lambda device, load=load: load(device=device), device, FEED))
    for other in found[1:]:
        assert_equal(found[0], other)


def test_experts_and_a_paged_cache_replay_too(models: Models) -> None:
    spec = small(experts=8, intermediate=512, layers=4)
    caches = {"make_cache": paged_cache(2**20, "lru", 2**14)}
    found = []
    for graphs in (True, False):
        for shape in (
            {"make_experts": resident_experts},
            {"make_experts": paged_experts(12 * 2**20, "lru", 2**16)},
            {"make_experts": paged_experts(12 * 2**20, "lru", 2**16, guess=True)},
            {"make_experts": resident_experts, **caches},
        ):
            with CudaDevice(graphs=graphs) as device:
                found.append(run(models, spec, resident_layers(), device, **shape))
    for other in found[1:]:
        assert_equal(found[0], other)


def test_a_stream_is_the_same_with_and_without_graphs(models: Models) -> None:
    records = []
    for graphs in (True, False):
        with CudaDevice(graphs=graphs) as device:
            run(models, small(), streaming_layers(2), device)
        records.append(device.stream.records)
    assert records[0] == records[1]


def test_a_budget_counts_the_graphs_and_one_byte_less_says_so(models: Models) -> None:
    with CudaDevice() as device:
        right = run(models, small(), streaming_layers(2), device)
        assert device.memory.use().holders[RECORDED_LISTS] == GRAPH_MEMORY
        peak = right.memory.peak
    with CudaDevice(memory=peak) as device:
        assert_equal(right, run(models, small(), streaming_layers(2), device))
    with CudaDevice(memory=peak - 1) as device, pytest.raises(OutOfDeviceMemory):
        run(models, small(), streaming_layers(2), device)
    with CudaDevice(memory=peak - GRAPH_MEMORY, graphs=False) as device:
        assert_equal(right, run(models, small(), streaming_layers(2), device))


def test_graphs_stay_within_what_is_counted_for_them(models: Models) -> None:
    with CudaDevice() as device, Checkpoint.open(models.path(small())) as checkpoint:
        model = QwenModel(CheckpointWeights(checkpoint), device, resident_layers(), context=64)
        model.begin(40)
        model.forward(FEED[0])
        torch.cuda.synchronize()
        before, reserved = torch.cuda.mem_get_info()[0], torch.cuda.memory_reserved()
        for token in range(30):
            model.forward(torch.tensor([[token]]))
        torch.cuda.synchronize()
        assert before - torch.cuda.mem_get_info()[0] <= GRAPH_MEMORY
        assert torch.cuda.memory_reserved() - reserved <= GRAPH_MEMORY
        model.close()


def test_there_are_never_more_graphs_than_are_counted(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    with CudaDevice() as device:
        right = run(models, small(), resident_layers(), device)
    monkeypatch.setattr("xinfer_lab.device.graphs.MOST_GRAPHS", 3)
    with CudaDevice() as device:
        assert_equal(right, run(models, small(), resident_layers(), device))
        assert device.graphs is not None and device.graphs.captured == 3


# The fused functions against the plain text


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("batch", "tokens", "position", "heads", "kv_heads", "dim", "window"),
    [
        (1, 1, 0, 8, 2, 64, None), (1, 1, 701, 14, 2, 64, None), (1, 1, 800, 8, 2, 128, 100),
        (3, 1, 300, 8, 2, 32, None), (1, 33, 0, 8, 2, 64, None), (2, 9, 40, 8, 2, 64, 20), (1, 1, 899, 4, 4, 80, None),
    ],
)  # fmt: skip
def test_fused_layers_are_the_plain_text_up_to_rounding(
    dtype: torch.dtype, batch: int, tokens: int, position: int, heads: int, kv_heads: int, dim: int, window: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    generator = torch.Generator("cuda").manual_seed(0)

    def made(*shape: int) -> torch.Tensor:
        drawn = torch.randn(shape, generator=generator, device="cuda")
        return (drawn / shape[-1] ** 0.5 if len(shape) > 1 else drawn).to(dtype)

    size, wide, queries, keys = 256, 704, heads * dim, kv_heads * dim
    shapes = {"q": (queries, size), "k": (keys, size), "v": (keys, size)}
    weights = {f"self_attn.{name}_proj.weight": made(*shape) for name, shape in shapes.items()}
    weights |= {f"self_attn.{name}_proj.bias": made(shape[0]) for name, shape in shapes.items()}
    weights |= {
        "input_layernorm.weight": made(size), "self_attn.o_proj.weight": made(size, queries),
        "post_attention_layernorm.weight": made(size), "mlp.gate_proj.weight": made(wide, size),
        "mlp.up_proj.weight": made(wide, size), "mlp.down_proj.weight": made(size, wide),
    }  # fmt: skip
    spec = LayerSpec(
        num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=dim, rms_norm_eps=1e-6, rope_theta=1e6,
        window=window,
    )  # fmt: skip
    hidden, cache = made(batch, tokens, size) * 16, torch.randn(2, 900, batch, kv_heads, dim, device="cuda").to(dtype)
    places = [position]
    if tokens == 1:
        places.append(torch.tensor([position], dtype=torch.int32, device="cuda"))
    results = []
    for place in places:
        out, kv = hidden.clone(), cache.clone()
        layers.decoder_layer(out, weights, kv[0], kv[1], place, spec)
        results.append((out, kv))
    assert all(torch.equal(one, other) for one, other in zip(results[0], results[-1], strict=True))
    monkeypatch.setattr(layers, "fused_for", lambda tensor: None)
    out, kv = hidden.clone(), cache.clone()
    layers.decoder_layer(out, weights, kv[0], kv[1], position, spec)
    tolerance = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}[dtype]
    torch.testing.assert_close(results[0][0], out, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(results[0][1], kv, rtol=tolerance, atol=tolerance)
    assert fused_for(hidden) is not None
