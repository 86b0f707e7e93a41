"""On a GPU: models with experts, resident and in pages, give the same bytes, and stay within what kernels declare."""

from __future__ import annotations

import pytest
import torch

from tests.models import Models, assert_clean, assert_equal
from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.qwen2 import Checkpoint, ReferenceModel, SyntheticSpec, expert_layout
from xinfer_lab.qwen2 import mixture as maths
from xinfer_lab.qwen2.mixture_costs import expert_work, route_work, shared_expert_work
from xinfer_lab.residency.experts import ExpertsFactory, resident_experts
from xinfer_lab.residency.factories import resident_layers
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.paged_experts import paged_experts
from xinfer_lab.residency.parity import Run, greedy_run, run_fixed
from xinfer_lab.residency.weights import CheckpointWeights

pytestmark = pytest.mark.cuda

PROMPT = torch.arange(40).view(1, 40) % 256
PASSES, CONTEXT, PAGE = 8, 64, 2**16


def small(dtype: str) -> SyntheticSpec:
    """Small, but of sizes that fused kernels take."""
    return SyntheticSpec(layers=4, hidden=256, heads=8, kv_heads=2, intermediate=512, experts=8, dtype=dtype)


def run(models: Models, spec: SyntheticSpec, device: CudaDevice, feed, experts: ExpertsFactory) -> Run:
    def load(device):
        with Checkpoint.open(models.path(spec)) as checkpoint:
            weights = CheckpointWeights(checkpoint)
            return QwenModel(weights, device, resident_layers(), context=CONTEXT, make_experts=experts)

    return greedy_run(load, device, PROMPT, PASSES) if feed is None else run_fixed(load, device, feed)


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_experts_in_pages_equal_the_resident_model_and_that_one_the_plain_run(models: Models, dtype: str, check: bool):
    spec = small(dtype)
    with CudaDevice() as device:
        right = run(models, spec, device, None, resident_experts)
    assert_clean(right)
    with Checkpoint.open(models.path(spec)) as checkpoint:
        plain = ReferenceModel(checkpoint, capacity=CONTEXT, device="cuda")
    assert_equal([plain.forward(tokens).cpu() for tokens in right.tokens], right)
    pages = -(-expert_layout(spec.config()).nbytes // PAGE)
    for room in (2, 5, 20):
        for guess in (False, True):
            with CudaDevice(check=check) as device:
                found = run(
                    models, spec, device, right.tokens, paged_experts(room * pages * PAGE, "lru", PAGE, guess=guess)
                )
            assert_equal(right, found)
            assert_clean(found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 64, 3000])
def test_the_functions_stay_within_their_workspace(rows: int, dtype: torch.dtype):
    size, wide, count, per_row = 1024, 704, 60, 4
    kwargs = {"rows": rows, "hidden_size": size, "dtype": dtype}

    def made(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device="cuda").to(dtype)

    hidden, norm, gate, normed, mixed = (
        made(1, rows, size),
        made(size),
        made(count, size),
        made(rows, size),
        made(rows, size),
    )
    experts, where = (torch.zeros(rows * per_row, dtype=torch.int64, device="cuda") for _ in range(2))
    scores, every = made(rows * per_row), torch.arange(rows, device="cuda")
    mlp = {
        "gate_proj.weight": made(wide, size),
        "up_proj.weight": made(wide, size),
        "down_proj.weight": made(size, wide),
    }
    shared = {f"mlp.shared_expert.{name}": tensor for name, tensor in mlp.items()}
    shared["mlp.shared_expert_gate.weight"] = made(1, size)
    calls = [
        (
            lambda: maths.route(hidden, norm, gate, normed, experts, where, scores, eps=1e-6, renormalise=True),
            route_work(**kwargs, experts=count, per_row=per_row),
        ),
        (lambda: maths.shared_expert(normed, shared, mixed), shared_expert_work(**kwargs, intermediate_size=wide)),
        (
            lambda: maths.expert(normed, every, scores[:rows], mlp, mixed),
            expert_work(**kwargs, intermediate_size=wide),
        ),
    ]
    for call, work in calls:
        with torch.inference_mode():
            call()  # cuBLAS allocates its own once
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_stats()["requested_bytes.all.current"]
            call()
            torch.cuda.synchronize()
        # What was asked for: the caching allocator rounds up, see `xinfer_lab.qwen2.costs`.
        assert torch.cuda.memory_stats()["requested_bytes.all.peak"] - before <= work.workspace
